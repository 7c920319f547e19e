import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pidFileOf } from "../src/engine/runtime/leftovers.ts";
import { readDaemonFile } from "../src/home/daemon-file.ts";
import { packageRoot } from "../src/lib/package-root.ts";
import type { Message } from "../src/protocol/messages.ts";

/** A daemon as a user runs it: the built package, in a process and a home of its own. */
export interface BenchDaemon {
  pid: number;
  home: string;
  url: string;
  token: string;
  /** From the start of the process until its health route answered. */
  readyMs: number;
  runtimePid(): number;
  ask(text: string, conversation: string): Promise<Message>;
  /** Reads a response of the API to its end. `ms` is how long that took. */
  get(path: string): Promise<{ ms: number; body: unknown }>;
  stop(): Promise<void>;
}

/** Builds the package, so that the current source is measured. */
export function build(): void {
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(packageRoot, "scripts", "build.js")], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`the build failed:\n${stdout}${stderr}`);
}

export function temporaryFolder(): { path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), "io-bench-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 }) };
}

export async function startBenchDaemon(modelUrl: string, home: string, config?: Record<string, unknown>): Promise<BenchDaemon> {
  const env = {
    PATH: process.env.PATH,
    ...(process.env.COPILOT_CLI_PATH && { COPILOT_CLI_PATH: process.env.COPILOT_CLI_PATH }),
    HOME: home,
    IO_HOME: join(home, "io"),
    IO_PORT: "0",
    COPILOT_PROVIDER_BASE_URL: modelUrl,
    COPILOT_PROVIDER_API_KEY: "none",
    COPILOT_MODEL: "scripted",
  };
  if (config) {
    mkdirSync(env.IO_HOME, { recursive: true, mode: 0o700 });
    writeFileSync(join(env.IO_HOME, "config.json"), JSON.stringify(config), { mode: 0o600 });
  }
  const started = performance.now();
  const child = spawn(process.execPath, [join(packageRoot, "bin", "io.js"), "--daemon"], { env, stdio: "ignore" });
  const file = await daemonFile(child, join(env.IO_HOME, "daemon.json"));
  const url = `http://127.0.0.1:${file.port}`;
  const health = await fetch(`${url}/api/health`);
  await health.arrayBuffer();
  const readyMs = performance.now() - started;
  const agent = new Agent({ keepAlive: true });
  const token = readFileSync(join(env.IO_HOME, "token"), "utf8").trim();
  return {
    pid: file.pid,
    home: env.IO_HOME,
    url,
    token,
    readyMs,
    runtimePid: () => Number(readFileSync(pidFileOf(join(env.IO_HOME, "sessions"), file.pid), "utf8")),
    async ask(text, conversation) {
      const message = await post(agent, `${url}/api/messages?wait=true`, token, { text, conversation });
      if (message.status !== "done") throw new Error(`a message was not answered: ${JSON.stringify(message)}`);
      return message;
    },
    async get(path) {
      const asked = performance.now();
      const body: unknown = await (await fetch(url + path, { headers: { authorization: `Bearer ${token}` } })).json();
      return { ms: performance.now() - asked, body };
    },
    stop() {
      agent.destroy();
      return end(child);
    },
  };
}

function post(agent: Agent, url: string, token: string, body: object): Promise<Message> {
  return new Promise((done, failed) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const sent = request(url, { agent, method: "POST", headers }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        text += chunk;
      });
      response.once("end", () => done(JSON.parse(text) as Message));
    });
    sent.once("error", failed);
    sent.end(JSON.stringify(body));
  });
}

async function daemonFile(child: ChildProcess, path: string) {
  for (;;) {
    const daemon = readDaemonFile(path);
    if (daemon?.pid === child.pid) return daemon!;
    if (child.exitCode !== null) throw new Error(`the daemon ended with ${child.exitCode}`);
    await sleep(2);
  }
}

/** Ends a process that this bench started, and waits until it has ended. */
export async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  const late = setTimeout(() => child.kill("SIGKILL"), 10_000);
  await gone;
  clearTimeout(late);
}

/** The value below which a share of the values lie. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (sorted.length - 1) * share;
  const low = sorted[Math.floor(at)] ?? Number.NaN;
  const high = sorted[Math.ceil(at)] ?? Number.NaN;
  return low + (high - low) * (at - Math.floor(at));
}

export const median = (values: readonly number[]): number => quantile(values, 0.5);

/** One line for a series of times. */
export function describe(name: string, values: readonly number[]): string {
  const ms = (value: number) => `${value.toFixed(1)} ms`;
  return `${name.padEnd(26)} median ${ms(median(values))}, p95 ${ms(quantile(values, 0.95))}, ${values.length} runs`;
}

/** The resident memory of a process, in megabytes. */
export function memoryMb(pid: number): number {
  const kilobytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kilobytes) / 1024;
}

/** Prints a value and its limit. A missed limit makes the bench fail at its end. */
export function judge(what: string, value: number, limit: number, unit = ""): void {
  const held = value <= limit;
  console.log(`${held ? "held  " : "MISSED"} ${what}: ${value.toFixed(2)}${unit} (limit ${limit}${unit})`);
  if (!held) process.exitCode = 1;
}
