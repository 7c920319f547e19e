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

/** A real daemon in its own process. */
export interface TestDaemon {
  home: string;
  url: string;
  pid: number;
  token: string;
  child: ChildProcess;
  output(): string;
  fetch(path: string, init?: RequestInit): Promise<Response>;
  json<T>(method: string, path: string, body?: unknown): Promise<T>;
  /** Sends a message and waits until it is finished. */
  ask(message: NewMessage): Promise<Message>;
  /** Follows the event stream; `events` grows as they arrive. */
  follow(options?: { conversation?: string; lastEventId?: string }): Promise<Follower>;
  /** The pid of the daemon's Copilot runtime. */
  runtimePid(): number;
  kill(signal: NodeJS.Signals): Promise<void>;
}

export interface Follower {
  events: (ServerEvent & { body: Record<string, unknown>; at: number })[];
  of(type: string): Follower["events"];
  leave(): void;
}

/** The environment of a user who has set no variables, plus `extra`. */
export function cleanEnvironment(home: string, extra: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  return { PATH: process.env.PATH, HOME: home, IO_HOME: home, IO_PORT: "0", ...testedMode(home), ...testedRuntime(), ...extra };
}

/**
 * The slow tests let models write wherever the test looks for the result, so they run in mode `full` unless the config of their
 * home names a mode. `IO_MODE: ""` selects the default mode, which the fast tests use.
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

/** The runtime that the tests were told to use. Every environment they create includes it. */
export function testedRuntime(): NodeJS.ProcessEnv {
  const { COPILOT_CLI_PATH } = process.env;
  return COPILOT_CLI_PATH ? { COPILOT_CLI_PATH } : {};
}

/** Points a daemon at a scripted model. */
export function providerEnvironment(url: string): NodeJS.ProcessEnv {
  return { COPILOT_PROVIDER_BASE_URL: url, COPILOT_PROVIDER_API_KEY: "scripted-key-0123456789", COPILOT_MODEL: "scripted" };
}

/** A place to start programs in, such as another host, and the way to reach its ports from here. */
export interface Elsewhere {
  run(argv: readonly string[]): string[];
  reach(port: number): Promise<number>;
}
const HERE: Elsewhere = { run: (argv) => [...argv], reach: async (port) => port };

const checkAnswer = createAnswerCheck();

/**
 * Starts a daemon for one test. To share it between all tests of a file, pass `afterAll`; inside a hook or a test, where
 * `afterAll` is never called, pass `atTheEnd` of `collectEndings`.
 */
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
    // The runtime exits a moment later and still writes into the folder that is about to be removed. If the daemon was killed
    // long ago, another process may have its pid by now.
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
    // Each request uses a new connection: a test that blocked its event loop would not notice that the daemon had closed an
    // idle one.
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
      // The stream ends when the test leaves it or the daemon is killed.
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

/** Stops the daemon that a command started on a home, and its runtime, if they are still running. */
export async function endDaemonOf(home: string): Promise<void> {
  const file = readDaemonFile(join(home, "daemon.json"));
  if (!file || hasEnvironment(file.pid, "IO_HOME", home) === false) return;
  const runtime = runtimeOf(home, file.pid);
  const lives = (pid: number, name: string, value: string) => isAlive(pid) && hasEnvironment(pid, name, value) !== false;
  process.kill(file.pid, "SIGTERM");
  await until("the end of the daemon", () => !lives(file.pid, "IO_HOME", home), 30_000);
  if (runtime) await until("the end of its runtime", () => !lives(runtime, "COPILOT_HOME", join(home, "sessions")), 30_000);
}

/**
 * Runs `io` until it exits. A chat belongs to the project it is opened in, so `io` without arguments starts in `home`, which is
 * not a project, unless `place` names another folder.
 */
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

/** Starts `io` and collects its output. `input` is its standard input, which stays open until the caller closes it. */
export function startIo(
  args: string[],
  home: string,
  extra: NodeJS.ProcessEnv = {},
  cwd = args.length === 0 ? home : process.cwd(),
) {
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
