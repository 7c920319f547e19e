import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { readEvents, type ServerEvent } from "../../src/client/sse.ts";
import { pidFileOf } from "../../src/engine/runtime/leftovers.ts";
import { readDaemonFile } from "../../src/home/daemon-file.ts";
import { isAlive } from "../../src/lib/alive.ts";
import { packageRoot } from "../../src/lib/package-root.ts";
import { hasEnvironment } from "../../src/process/processes.ts";
import type { Message, NewMessage } from "../../src/protocol/messages.ts";
import { createAnswerCheck } from "./described.ts";
import type { AtTheEnd } from "./home.ts";
import { watchLoop } from "./loop-watch.ts";
import { until } from "./until.ts";

export const IO = join(packageRoot, "bin", "io.js");

/** A real daemon in a process of its own. */
export interface TestDaemon {
  home: string;
  url: string;
  pid: number;
  token: string;
  child: ChildProcess;
  output(): string;
  fetch(path: string, init?: RequestInit): Promise<Response>;
  json<T>(method: string, path: string, body?: unknown): Promise<T>;
  /** Says something and waits for the end of it. */
  ask(message: NewMessage): Promise<Message>;
  /** Follows the events; the list grows as they come. */
  follow(options?: { conversation?: string; lastEventId?: string }): Promise<Follower>;
  /** The pid of its Copilot runtime. */
  runtimePid(): number;
  kill(signal: NodeJS.Signals): Promise<void>;
}

export interface Follower {
  events: (ServerEvent & { body: Record<string, unknown>; at: number })[];
  of(type: string): Follower["events"];
  leave(): void;
}

/** The environment of a user who has nothing set, but for what is given. */
export function cleanEnvironment(home: string, extra: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, HOME: home, IO_HOME: home, IO_PORT: "0", ...testedMode(home), ...testedRuntime(), ...extra };
}

/**
 * The slow tests let models write wherever the test looks for it, so they run in the mode `full` unless their home's config
 * names a mode; `IO_MODE: ""` gives them the default, in which the fast tests run.
 */
function testedMode(home: string): NodeJS.ProcessEnv {
  const { IO_TEST_MODE: mode } = process.env;
  return mode && !configured(home).mode ? { IO_MODE: mode } : {};
}

function configured(home: string): { mode?: string } {
  try {
    return JSON.parse(readFileSync(join(home, "config.json"), "utf8")) as { mode?: string };
  } catch {
    return {};
  }
}

/** The runtime that the tests were told to run on, for every environment that they make. */
export function testedRuntime(): NodeJS.ProcessEnv {
  const { COPILOT_CLI_PATH } = process.env;
  return COPILOT_CLI_PATH ? { COPILOT_CLI_PATH } : {};
}

/** Points a daemon at a scripted model. */
export function providerEnvironment(url: string): NodeJS.ProcessEnv {
  return { COPILOT_PROVIDER_BASE_URL: url, COPILOT_PROVIDER_API_KEY: "scripted-key-0123456789", COPILOT_MODEL: "scripted" };
}

/** Where a program is started, and how a port there is reached from here. */
export interface Elsewhere {
  run(argv: readonly string[]): string[];
  reach(port: number): Promise<number>;
}
const HERE: Elsewhere = { run: (argv) => [...argv], reach: async (port) => port };

const checkAnswer = createAnswerCheck();

/** Started for one test. For all tests of a file give `afterAll`, or inside of a hook or a test, where that is never called, `collectEndings`. */
export async function startDaemonProcess(
  home: string,
  extra: NodeJS.ProcessEnv = {},
  atTheEnd: AtTheEnd = onTestFinished,
  program: readonly string[] = [IO, "--daemon"],
  place: Elsewhere = HERE,
): Promise<TestDaemon> {
  const loop = watchLoop();
  const [first, ...args] = place.run([process.execPath, ...loop.args, ...program]);
  const child = spawn(first!, args, {
    env: { ...cleanEnvironment(home, extra), ...loop.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  child.stdout.on("data", (chunk) => {
    output += chunk;
  });
  child.stderr.on("data", (chunk) => {
    output += chunk;
  });
  const exited = new Promise<void>((resolve) => child.once("exit", () => resolve()));
  atTheEnd(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    await exited;
    // Its runtime notices a moment later, and until then writes into the folder that is to go. Where the daemon was killed
    // long ago, the number may be another process's by now.
    const runtime = runtimeOf(home, child.pid ?? 0);
    const isOurs = () => isAlive(runtime!) && hasEnvironment(runtime!, "COPILOT_HOME", join(home, "sessions")) !== false;
    const hasEnded = () => !isOurs();
    if (runtime) await until("the end of the runtime", hasEnded, 5_000).catch(() => isOurs() && process.kill(runtime, "SIGKILL"));
    if (runtime) await until("the end of the runtime", hasEnded);
    loop.end();
  });
  const serving = () => {
    if (child.exitCode !== null) throw new Error(`the daemon ended with ${child.exitCode}: ${output}`);
    const daemon = readDaemonFile(join(home, "daemon.json"));
    return daemon?.pid === child.pid ? daemon : undefined;
  };
  const file = await until(`a daemon on ${home}`, serving, 45_000);
  loop.begin();
  const url = `http://${file!.host}:${await place.reach(file!.port)}`;
  const token = extra.IO_TOKEN ?? readFileSync(join(home, "token"), "utf8").trim();

  const daemon: TestDaemon = {
    home,
    url,
    pid: file!.pid,
    token,
    child,
    output: () => output,
    // A connection of its own for each: a test that blocked its own loop would not have noticed that the daemon closed an idle one.
    fetch: (path, init = {}) =>
      fetch(url + path, {
        ...init,
        headers: { authorization: `Bearer ${token}`, connection: "close", ...init.headers },
      }).catch((error: unknown) => {
        if (child.exitCode === null && child.signalCode === null) throw error;
        throw new Error(`the daemon has ended (${child.exitCode ?? child.signalCode}): ${output.slice(-2_000)}`, {
          cause: error,
        });
      }),
    async json<T>(method: string, path: string, body?: unknown) {
      const response = await daemon.fetch(path, {
        method,
        ...(body !== undefined && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
      });
      const answer = (await response.json()) as T;
      checkAnswer(method, path, response.status, answer);
      return answer;
    },
    ask: (message) => daemon.json<Message>("POST", "/api/messages?wait=true", message),
    async follow({ conversation, lastEventId } = {}) {
      const abort = new AbortController();
      onTestFinished(() => abort.abort());
      const query = conversation ? `?conversation=${conversation}` : "";
      const response = await daemon.fetch(`/api/events${query}`, {
        signal: abort.signal,
        headers: lastEventId ? { "last-event-id": lastEventId } : {},
      });
      const events: Follower["events"] = [];
      const read = async () => {
        for await (const event of readEvents(response.body!))
          events.push({ ...event, body: JSON.parse(event.data), at: performance.now() });
      };
      // The stream ends when the test leaves it or the daemon is killed under it.
      read().catch(() => undefined);
      return { events, of: (type) => events.filter(({ event }) => event === type), leave: () => abort.abort() };
    },
    runtimePid: () => runtimeOf(home, file!.pid) ?? Number.NaN,
    async kill(signal) {
      child.kill(signal);
      await exited;
    },
  };
  return daemon;
}

function runtimeOf(home: string, pid: number): number | undefined {
  const file = pidFileOf(join(home, "sessions"), pid);
  return existsSync(file) ? Number(readFileSync(file, "utf8")) : undefined;
}

/** Ends the daemon that a command has started on a home, with its runtime, if it is still there. */
export async function endDaemonOf(home: string): Promise<void> {
  const file = readDaemonFile(join(home, "daemon.json"));
  if (!file || hasEnvironment(file.pid, "IO_HOME", home) === false) return;
  const runtime = runtimeOf(home, file.pid);
  const lives = (pid: number, name: string, value: string) => isAlive(pid) && hasEnvironment(pid, name, value) !== false;
  process.kill(file.pid, "SIGTERM");
  await until("the end of the daemon", () => !lives(file.pid, "IO_HOME", home), 30_000);
  if (runtime) await until("the end of its runtime", () => !lives(runtime, "COPILOT_HOME", join(home, "sessions")), 30_000);
}

/** Runs `io` to its end. A chat belongs to the project that it is opened in: unless said otherwise, to none. */
export function runIo(
  args: string[],
  home: string,
  extra: NodeJS.ProcessEnv = {},
  input?: string,
  place: Pick<Elsewhere, "run"> & { cwd?: string } = HERE,
): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const [first, ...rest] = place.run([process.execPath, IO, ...args]);
  return new Promise((done) => {
    const cwd = place.cwd ?? (args.length === 0 ? home : process.cwd());
    const child = spawn(first!, rest, { cwd, env: cleanEnvironment(home, extra), stdio: ["pipe", "pipe", "pipe"] });
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (chunk) => {
      stdout += chunk;
    });
    child.stderr.on("data", (chunk) => {
      stderr += chunk;
    });
    child.once("close", (code) => done({ code, stdout, stderr }));
    child.stdin.end(input ?? "");
  });
}

/** `io` under way, with what it has said so far; `input` is its standard input, for as long as the caller keeps it open. */
export function startIo(args: string[], home: string, extra: NodeJS.ProcessEnv = {}) {
  const cwd = args.length === 0 ? home : process.cwd();
  const child = spawn(process.execPath, [IO, ...args], {
    cwd,
    env: cleanEnvironment(home, extra),
    stdio: ["pipe", "pipe", "pipe"],
  });
  const said = { stdout: "", stderr: "" };
  child.stdout.on("data", (chunk) => {
    said.stdout += chunk;
  });
  child.stderr.on("data", (chunk) => {
    said.stderr += chunk;
  });
  const ended = new Promise<number | null>((done) => child.once("close", done));
  onTestFinished(() => void (child.exitCode === null && child.kill("SIGKILL")));
  return { said, ended, input: child.stdin };
}
