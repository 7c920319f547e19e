import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { readStream } from "../src/engine/wire/stream.ts";
import { createTokenCount } from "../src/engine/wire/token-count.ts";
import { clipToTokens, estimateTokens } from "../src/lib/estimate-tokens.ts";
import { createRedactor } from "../src/lib/redact.ts";
import { readYaml } from "../src/lib/yaml.ts";
import { exec } from "../src/process/exec.ts";
import { surveyProject } from "../src/project/analyze.ts";
import { detectTests } from "../src/project/test-commands.ts";
import { findDestructiveCommand } from "../src/shell/destructive-commands.ts";
import { inspect } from "../src/skills/inspect.ts";
import { reviewPrompt } from "../src/swarm/agents/prompts.ts";
import { readTasks } from "../src/swarm/agents/task-list.ts";
import { readVerdict } from "../src/swarm/review/verdict.ts";
import { readable } from "../src/tools/readable.ts";
import { openWiki, type Wiki } from "../src/wiki/wiki.ts";
import { testGit } from "../test/support/git.ts";
import { yamlBombs } from "../test/support/yaml-bombs.ts";
import { type Item, inputs } from "./silence-inputs.ts";
import { throughRequests } from "./silence-requests.ts";
import { build, judge, temporaryFolder } from "./support.ts";

const LIMIT_MS = 50;
const MB = 1_000_000;
const quiet = () => {};
const log = { debug: quiet, info: quiet, warn: quiet, error: quiet };

/** A text of at least this many characters, as one flat string. */
const filled = (text: string, letters: number) => Buffer.from(text.repeat(Math.ceil(letters / text.length))).toString();

/** Measures for how long each item of a hostile corpus blocks the event loop, and judges the longest time. */
export async function run(args: string[] = []): Promise<void> {
  build();
  const only = args.find((arg) => !arg.startsWith("-")) ?? "";
  // How long the machine itself holds up a program that does nothing.
  const still = await silenceOf(() => sleep(1_000));
  console.log(`${"nothing at all".padEnd(58)} ${still.own.toFixed(0).padStart(6)} ms, ${still.wall.toFixed(0)} ms by the clock`);
  let longest = 0;
  const deal = async ({ what, work }: Item) => {
    const { own, took } = await silenceOf(work);
    longest = Math.max(longest, own);
    const mark = own > LIMIT_MS ? "   TOO LONG" : "";
    console.log(`${what.padEnd(58)} ${own.toFixed(0).padStart(6)} ms of ${took.toFixed(0)} ms${mark}`);
  };
  await throughCorpus(only, deal);
  await throughRequests(only, deal);
  judge("longest silence of the event loop", longest, LIMIT_MS, " ms");
}

/** Passes on the corpus items whose name contains a text, one after another. */
export async function throughCorpus(only: string, deal: (item: Item) => Promise<void>): Promise<void> {
  const folder = temporaryFolder();
  const wiki = openWiki({ root: join(folder.path, "wiki"), emit: quiet, log });
  try {
    const items = [
      ...[...texts(), ...shells(folder.path), ...wikis(wiki, folder.path), ...projects(folder.path)],
      ...inputs(folder.path),
    ];
    for (const item of items.filter(({ what }) => what.includes(only))) {
      item.before?.();
      await deal(item);
    }
  } finally {
    await wiki.close();
    folder.remove();
  }
}

/** Measures the longest time between two turns of the event loop (`wall`), and how much of it this process worked (`own`). */
export async function silenceOf(work: () => unknown): Promise<{ own: number; wall: number; took: number }> {
  const most = { wall: 0, cpu: 0 };
  let last = { at: performance.now(), used: workedMs() };
  const beat = () => {
    most.wall = Math.max(most.wall, performance.now() - last.at);
    most.cpu = Math.max(most.cpu, workedMs() - last.used);
    last = { at: performance.now(), used: workedMs() };
  };
  const pulse = setInterval(beat, 1);
  await sleep(20);
  beat();
  most.wall = 0;
  most.cpu = 0;
  const started = performance.now();
  await work();
  const took = performance.now() - started;
  await sleep(20);
  beat();
  clearInterval(pulse);
  // On a shared machine, only the time in which we worked counts as ours.
  return { own: Math.min(most.wall, most.cpu), wall: most.wall, took };
}

/** The CPU time of the event loop's thread; where the system does not report that, of all threads. */
function workedMs(): number {
  try {
    return Number(readFileSync(`/proc/self/task/${process.pid}/schedstat`, "utf8").split(" ", 1)[0]) / 1e6;
  } catch {
    // Not Linux: the worker threads for large YAML texts are included.
    const { user, system } = process.cpuUsage();
    return (user + system) / 1_000;
  }
}

function texts(): Item[] {
  const redactor = createRedactor(["a-known-secret-0123456789"]);
  const count = createTokenCount();
  const on = (what: string, text: string, work: (text: string) => unknown): Item => ({ what, work: () => work(text) });
  const sse = async function* () {
    const chunk = new TextEncoder().encode("x".repeat(16_384));
    for (let at = 0; at < 320; at += 1) yield chunk;
  };
  const page = (html: string) => readable(html, "http://x.invalid", 52_000);
  return [
    on("5 MB of a tool's output, redacted", filled("token ghp_x sk- Bearer a 123456: ", 5 * MB), redactor.clean),
    on("5 MB of beginnings of keys, redacted", filled("-----BEGIN ", 5 * MB), redactor.clean),
    on("5 MB of digits, redacted", filled("0", 5 * MB), redactor.clean),
    ...Object.entries(yamlBombs(250_000)).map(([what, text]) =>
      on(`250 KB of YAML: ${what}`, filled(text, text.length), readYaml),
    ),
    on("1 MB of brackets in place of tasks", filled("[", MB), (text) => readTasks(text, "[FE]")),
    on("1 MB of open lists in prose in place of tasks", filled("[a ", MB), (text) => readTasks(text, "[FE]")),
    on("1 MB of deep JSON in place of tasks", filled("[", MB / 2) + filled("]", MB / 2), (text) => readTasks(text, "[FE]")),
    on("a verdict of 1 MB", `${filled("~~ not! ", MB)}\nAPPROVED`, (text) => readVerdict(text, "APPROVED")),
    on("a verdict of 1 MB in lines", `${filled("not so\n", MB)}\nAPPROVED`, (text) => readVerdict(text, "APPROVED")),
    on("a review of 1 MB on one line", filled("`", MB), (text) =>
      reviewPrompt({
        about: { issue: text, decisions: [] },
        artefact: { diff: text, tree: "t" },
        findings: [text],
        approvalKeyword: "OK",
      }),
    ),
    on("a recap of 40 messages of 20 KB", filled("für wörter ", 20_000), (text) =>
      Array.from({ length: 40 }, () => clipToTokens(text, 400)),
    ),
    on("a recap of one message of 5 MB", filled("ä", 5 * MB), (text) => clipToTokens(text, 400)),
    on("5 MB counted in tokens", filled("wörd ", 5 * MB), estimateTokens),
    on("a request of 2 MB held against its window", filled("wörd ", 2 * MB), (content) =>
      count.fits({ model: "m", messages: [{ content }] } as never, 1_000),
    ),
    { what: "5 MB of a provider's stream on one line", work: () => drain(readStream(sse(), quiet)) },
    on("5 MB of HTML", filled("<p><a href='x'>link</a> <b>word ", 5 * MB), page),
    on("5 MB of open tags", filled("<div>", 5 * MB), page),
    on("5 MB of one tag", `<a ${filled("x=1 ", 5 * MB)}>`, page),
    on("5 MB of hidden text", `<div hidden>${filled("word ", 5 * MB)}`, page),
  ];
}

async function drain(stream: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of stream);
}

function shells(folder: string): Item[] {
  const command = (text: string) => filled(text, 99_990);
  const skill = join(folder, "skill");
  mkdirSync(skill);
  writeFileSync(join(skill, "long.sh"), "sudo -x ".repeat(62_000));
  writeFileSync(join(skill, "lines.sh"), "curl x | sudo -x -x sh\n".repeat(21_000));
  return [
    ...["a;", "$(", "'\"", "{a,", "x|", "rm -rf a ", "<<a\n", "0"].map((text) => ({
      what: `a command of 100,000 letters judged: ${JSON.stringify(text)}`,
      work: () => findDestructiveCommand(command(text), { cwd: folder, keep: [] }),
    })),
    { what: "a command of 5,000 letters asked for tests", work: () => detectTests(filled("npm test; ", 5_000)) },
    {
      what: "a command that writes a file of 100,000 letters",
      work: () =>
        findDestructiveCommand(`cat <<EOF > app.js\n${filled("const x = f(a, b); // some words\n", 99_000)}EOF\n`, {
          cwd: folder,
          keep: [],
        }),
    },
    { what: "a skill of 500 KB on one line", work: () => inspect(skill, ["long.sh"]) },
    { what: "a skill of 500 KB in lines", work: () => inspect(skill, ["lines.sh"]) },
    {
      what: "10 MB of a check's output",
      work: () => exec("/bin/sh", ["-c", "head -c 10000000 /dev/zero | tr '\\0' 'x'"], { maxOutput: 8_000 }),
    },
    {
      what: "10 MB of a diff on one line",
      work: () => exec("/bin/sh", ["-c", "head -c 10000000 /dev/zero | tr '\\0' 'x'"], { maxOutput: 1_000_000 }),
    },
  ];
}

function wikis(wiki: Wiki, folder: string): Item[] {
  const pages = join(folder, "wiki", "pages", "general");
  const words = (count: number) => Array.from({ length: count }, (_, at) => `w${(at * 7919) % 100_003}`).join(" ");
  const put = (path: string, text: string) => async () => {
    try {
      wiki.write(path, text);
    } catch {
      // Too long for a page, which is a valid answer too.
    }
    await wiki.settled();
  };
  return [
    { what: "a page of 1 MB saved", work: put("general/mb", `# One\n\n${words(150_000)}`) },
    { what: "a page of 1 MB found", work: () => wiki.search("w7919 w15838") },
    { what: "a page of 1 MB read", work: () => wiki.read("general/mb") },
    {
      what: "a page of 1 MB of brackets",
      work: put("general/brackets", `# ${filled("[x](", 400_000)}\n${filled("[", 600_000)}`),
    },
    { what: "a page of 10 MB saved", work: put("general/huge", words(1_600_000)) },
    {
      what: "a page of 10 MB put there by hand",
      before: () => writeFileSync(join(pages, "by-hand.md"), filled("xyz ", 10 * MB)),
      work: async () => {
        await wiki.search("xyz");
        await wiki.settled();
      },
    },
    {
      what: "10,000 pages put there by hand, listed and told",
      before: () => {
        for (let at = 0; at < 10_000; at += 1)
          writeFileSync(join(pages, `p${at}.md`), `# Page ${at}\n\n${"some words of it ".repeat(20)}`);
      },
      work: async () => {
        await wiki.list({ limit: 200 });
        await wiki.summary();
      },
    },
    { what: "10,000 pages indexed", work: () => wiki.settled() },
    { what: "10,000 pages listed", work: () => wiki.list({ limit: 1_000 }) },
    { what: "10,000 pages told", work: () => wiki.summary() },
    { what: "a search for what every page holds", work: () => wiki.search("words of") },
    { what: "a search of 2,000 letters", work: () => wiki.search("some words ".repeat(180)) },
  ];
}

function projects(folder: string): Item[] {
  const project = join(folder, "project");
  return [
    {
      what: "50,000 files of a project surveyed",
      before: () => {
        for (let at = 0; at < 50_000; at += 1) {
          const inside = join(project, `d${Math.floor(at / 500)}`);
          if (at % 500 === 0) mkdirSync(inside, { recursive: true });
          writeFileSync(join(inside, `f${at}.ts`), "export const x = 1;\n");
        }
      },
      work: () => surveyProject(testGit(), project),
    },
    {
      what: "120 package files of 1 MB surveyed",
      before: () => {
        const names = ["package.json", "Cargo.toml", "pom.xml", "go.mod", "requirements.txt", "pubspec.yaml"];
        for (let at = 0; at < 120; at += 1) {
          mkdirSync(join(project, `p${at}`), { recursive: true });
          const text =
            at % 4 === 0
              ? filled("[", 900_000)
              : at % 4 === 1
                ? `{"name":${filled("[", 900_000)}}`
                : filled('a = "b"\n', 900_000);
          writeFileSync(join(project, `p${at}`, names[at % 6]!), text);
        }
      },
      work: () => surveyProject(testGit(), project),
    },
  ];
}
