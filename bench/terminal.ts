import { type ChildProcess, spawn } from "node:child_process";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type ModelServer, startModelServer } from "../src/engine/rehearsal/server.ts";
import { textOf } from "../src/engine/rehearsal/wire.ts";
import { packageRoot } from "../src/lib/package-root.ts";
import type { Event } from "../src/protocol/events.ts";
import { emptyDraft } from "../src/tui/input/editor.ts";
import { layOutLive } from "../src/tui/screen/layout.ts";
import { createScreen } from "../src/tui/screen/screen.ts";
import { statusLine } from "../src/tui/screen/status-line.ts";
import { paint } from "../src/tui/text/style.ts";
import { Transcript } from "../src/tui/transcript/transcript.ts";
import { build, describe, end, judge, median, startBenchDaemon, temporaryFolder } from "./support.ts";
import { startBare } from "./turn.ts";

const TOKENS = 12;
const GAP_MS = 120;
const LINES = 2_000;
const STARTS = 15;

/**
 * Compares the terminal with a bare SDK session, from Enter to the model and from its words to the screen. Also measures the
 * start, and a very long answer.
 */
export async function run(args: string[]): Promise<void> {
  const turns = Number(args[0] ?? 15);
  build();
  const folder = temporaryFolder();
  const model = await startModelServer(() => ({ say: "Noted." }));
  const daemon = await startBenchDaemon(model.url, join(folder.path, "daemon"));
  const env = { PATH: process.env.PATH, HOME: folder.path, IO_HOME: daemon.home, TERM: "xterm-256color", LANG: "C.UTF-8" };
  const bare = await startBare(model.url, join(folder.path, "bare"), await seenBy(model, () => daemon.ask("hello", "look")));
  try {
    await starts(env);
    await sideBySide(turns, model, env, bare);
    await longAnswer(model, env);
    console.log(`load of the machine         ${loadavg()[0]!.toFixed(1)} on ${cpus().length} cores`);
  } finally {
    await daemon.stop();
    await bare.stop();
    await model.close();
    folder.remove();
  }
}

async function starts(env: NodeJS.ProcessEnv): Promise<void> {
  const prompts: number[] = [];
  const node: number[] = [];
  for (let run = 0; run < STARTS; run += 1) {
    const started = performance.now();
    const terminal = openPty(env);
    // Usable means that what is typed is shown.
    terminal.type("q");
    await terminal.echoes("q");
    prompts.push(performance.now() - started);
    await terminal.close();
    const alone = performance.now();
    await new Promise((done) => spawn(process.execPath, ["-e", "0"]).once("exit", done));
    node.push(performance.now() - alone);
  }
  console.log(describe("io to a usable prompt", prompts));
  console.log(describe("node alone", node));
  judge("prompt, median", median(prompts), 250, " ms");
}

async function sideBySide(
  turns: number,
  model: ModelServer,
  env: NodeJS.ProcessEnv,
  bare: Awaited<ReturnType<typeof startBare>>,
): Promise<void> {
  const times = { ioAsk: [] as number[], bareAsk: [] as number[], ioToken: [] as number[], bareToken: [] as number[] };
  const told = new Map<string, number>();
  let askedAt = 0;
  model.play((request) => {
    askedAt = performance.now();
    const turn = /turn (\w+)/.exec(textOf(request.messages.at(-1)))?.[1] ?? "none";
    const words = Array.from({ length: TOKENS }, (_, at) => `token-${turn}-${at} `);
    return { say: timed(words, told), gapMs: GAP_MS };
  });
  const terminal = openPty(env);
  await terminal.shows("connected");
  const session = await bare.begin();
  const heard = new Map<string, number>();
  session.on("assistant.message_delta", (event) => {
    const text = event.data.deltaContent.trim();
    if (!heard.has(text)) heard.set(text, performance.now());
  });
  for (let turn = 0; turn < turns + 2; turn += 1) {
    terminal.type(`turn io${turn}`);
    await sleep(50);
    let sentAt = performance.now();
    terminal.type("\r");
    const shown = await terminal.when(`token-io${turn}-${TOKENS - 1}`);
    const ioAsk = askedAt - sentAt;
    await terminal.idle();
    sentAt = performance.now();
    await bare.ask(session, `turn bare${turn}`);
    if (turn < 2) continue;
    times.ioAsk.push(ioAsk);
    times.bareAsk.push(askedAt - sentAt);
    for (let at = 1; at < TOKENS; at += 1) {
      times.ioToken.push((shown(`token-io${turn}-${at}`) ?? Number.NaN) - told.get(`token-io${turn}-${at}`)!);
      times.bareToken.push((heard.get(`token-bare${turn}-${at}`) ?? Number.NaN) - told.get(`token-bare${turn}-${at}`)!);
    }
  }
  await terminal.close();
  console.log(describe("Enter to request, io", times.ioAsk));
  console.log(describe("Enter to request, bare", times.bareAsk));
  console.log(describe("token to screen, io", times.ioToken));
  console.log(describe("token to client, bare", times.bareToken));
  judge("Enter to request, more than bare, medians", median(times.ioAsk) - median(times.bareAsk), 15, " ms");
  judge("token to screen, more than bare, medians", median(times.ioToken) - median(times.bareToken), 15, " ms");
}

async function longAnswer(model: ModelServer, env: NodeJS.ProcessEnv): Promise<void> {
  const lines = Array.from(
    { length: LINES },
    (_, at) => `- point ${at + 1}: some **words** about \`thing${at}\`, enough for a line\n`,
  );
  const text = `# Long\n\n${lines.join("")}\nThe end of it.`;
  model.play(() => ({ say: text.match(/[\s\S]{1,200}/g)!, gapMs: 4 }));
  const terminal = openPty(env);
  await terminal.shows("connected");
  const before = terminal.length();
  terminal.type("everything\r");
  await terminal.shows("The end of it.");
  await terminal.idle();
  const written = terminal.length() - before;
  await terminal.close();
  console.log(`longest pause of everybody while it came: ${terminal.longestPause().toFixed(0)} ms`);
  judge("longest frame, streamed", longestFrame(text.match(/[\s\S]{1,200}/g)!), 50, " ms");
  judge("longest frame, all at once", longestFrame([text]), 50, " ms");
  judge("bytes written, by its length", written / text.length, 3);
}

/** The most CPU time that one frame takes for an answer that arrives in these pieces. Other programs' time does not count. */
function longestFrame(pieces: readonly string[]): number {
  const transcript = new Transcript({ links: false, now: () => performance.now() });
  const looks = { colour: true, links: false };
  const screen = createScreen({ write: () => undefined, columns: () => 100, rows: () => 40, reflows: true });
  const status = statusLine(
    { connection: "connected", conversation: "main", queue: 0, tasks: 0, runs: 0, approvals: 0, tokens: 0 },
    100,
  );
  const news = (data: object, type: string) => ({ id: 1, type, data }) as Event;
  transcript.hear(news({ id: "m", conversation: "main" }, "message.started"));
  let longest = 0;
  for (const text of pieces) {
    transcript.hear(news({ id: "m", text }, "message.delta"));
    do frame();
    while (transcript.isBehind);
  }
  function frame() {
    const began = process.cpuUsage();
    const above = transcript.take(100).map((line) => paint(line, looks));
    const parts = { underWay: transcript.live(100), question: [], activity: [], draft: emptyDraft, hint: [], status };
    screen.draw({ above, ...layOutLive(parts, { width: 100, height: 40, looks }) });
    const { user, system } = process.cpuUsage(began);
    longest = Math.max(longest, (user + system) / 1_000);
  }
  return longest;
}

/** Words that record when they are sent. */
function timed(words: string[], told: Map<string, number>): string[] {
  return Object.assign([...words], {
    *[Symbol.iterator]() {
      for (const word of words) {
        told.set(word.trim(), performance.now());
        yield word;
      }
    },
  });
}

async function seenBy(model: ModelServer, ask: () => Promise<unknown>) {
  await ask();
  return model.requests.at(-1)!;
}

/** `io` in a pseudo-terminal of its own, by script(1). */
function openPty(env: NodeJS.ProcessEnv) {
  const command = `stty cols 100 rows 40; exec ${process.execPath} ${join(packageRoot, "bin", "io.js")}`;
  const child: ChildProcess = spawn("script", ["-qfec", command, "/dev/null"], {
    env,
    cwd: env.HOME,
    stdio: ["pipe", "pipe", "inherit"],
  });
  let output = "";
  let lastAt = 0;
  let longest = 0;
  const seen: { at: number; upTo: number }[] = [];
  child.stdout!.setEncoding("utf8");
  child.stdout!.on("data", (chunk: string) => {
    const now = performance.now();
    if (lastAt > 0 && output.includes("point 2:") && !output.includes("The end of it."))
      longest = Math.max(longest, now - lastAt);
    lastAt = now;
    output += chunk;
    seen.push({ at: now, upTo: output.length });
  });
  const wait = async (isThere: () => boolean, what: string) => {
    const until = performance.now() + 60_000;
    while (!isThere()) {
      if (performance.now() > until) throw new Error(`waited in vain for ${what}:\n${output.slice(-2_000)}`);
      await sleep(1);
    }
  };
  return {
    type: (text: string) => void child.stdin!.write(text),
    shows: (...texts: string[]) => wait(() => texts.some((text) => output.includes(text)), texts.join(" or ")),
    /** Waits for the text behind the prompt. The system's own echo comes before the prompt and does not count. */
    echoes: (text: string) =>
      wait(() => plain(output.slice(output.indexOf("›") + 1)).includes(text) && output.includes("›"), text),
    length: () => Buffer.byteLength(output),
    longestPause: () => longest,
    /** Waits for a text. Returns a function that tells when a text was first on the screen. */
    async when(text: string) {
      await wait(() => plain(output).includes(text), text);
      return (asked: string): number | undefined => {
        const found = seen.find(({ upTo }) => plain(output.slice(0, upTo)).includes(asked));
        return found?.at;
      };
    },
    async idle() {
      const from = output.length;
      await wait(() => /\d tokens/.test(output.slice(from)) || performance.now() - lastAt > 400, "an idle terminal");
    },
    async close() {
      child.stdin!.write("\u0003\u0003\u0003");
      await Promise.race([new Promise((done) => child.once("exit", done)), sleep(2_000)]);
      await end(child);
    },
  };
}

/** The output without escape sequences, since a word may be written in two parts. */
function plain(bytes: string): string {
  return bytes.split(/\p{Cc}\[[\d;?]*[A-Za-z]/u).join("");
}
