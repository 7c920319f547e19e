import { type ChildProcess, spawn } from "node:child_process";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { startModelServer } from "../src/engine/rehearsal/server.ts";
import { findRuntime } from "../src/engine/runtime/path.ts";
import { packageRoot } from "../src/lib/package-root.ts";
import { build, describe, end, judge, median, memoryMb, startBenchDaemon, temporaryFolder } from "./support.ts";

const MESSAGES = 50;

/** Measures the time from process start to serving, compared with a bare client's start, and the daemon's own memory. */
export async function run(args: string[]): Promise<void> {
  const runs = Number(args[0] ?? 11);
  build();
  const model = await startModelServer(() => ({ say: "Noted." }));
  const runtime = await findRuntime();
  const io: number[] = [];
  const bare: number[] = [];
  const node: number[] = [];
  try {
    for (let run = 0; run < runs; run += 1) {
      const folder = temporaryFolder();
      bare.push(await bareStart(runtime, join(folder.path, "bare")));
      node.push(await until(spawn(process.execPath, ["-e", "console.log(1)"], { stdio: ["ignore", "pipe", "inherit"] })));
      const daemon = await startBenchDaemon(model.url, folder.path);
      io.push(daemon.readyMs);
      await daemon.stop();
      folder.remove();
    }
    console.log(`load of the machine         ${loadavg()[0]!.toFixed(1)} on ${cpus().length} cores`);
    console.log(describe("io --daemon to ready", io));
    console.log(describe("bare client.start()", bare));
    console.log(describe("node alone", node));
    console.log(`IO / bare, medians         ${(median(io) / median(bare)).toFixed(2)}`);
    judge("ready, median", median(io), 700, " ms");
    await memory(model.url);
  } finally {
    await model.close();
  }
}

async function memory(modelUrl: string): Promise<void> {
  const folder = temporaryFolder();
  const daemon = await startBenchDaemon(modelUrl, folder.path);
  try {
    const show = (when: string) =>
      console.log(`memory ${when.padEnd(19)} daemon ${mb(daemon.pid)}, runtime apart ${mb(daemon.runtimePid())}`);
    show("after start");
    const afterStart = memoryMb(daemon.pid);
    for (let index = 0; index < MESSAGES; index += 1) await daemon.ask(`message ${index}`, `c${index % 5}`);
    show(`after ${MESSAGES} messages`);
    judge("daemon's own memory, larger of the two", Math.max(afterStart, memoryMb(daemon.pid)), 120, " MB");
  } finally {
    await daemon.stop();
    folder.remove();
  }
}

const mb = (pid: number): string => `${memoryMb(pid).toFixed(1)} MB`;

/** The time from starting a node process to the end of `client.start()` in it. */
function bareStart(path: string, home: string): Promise<number> {
  const connection = `RuntimeConnection.forStdio(${JSON.stringify({ path })})`;
  const script = `
    import { CopilotClient, RuntimeConnection } from "@github/copilot-sdk";
    const home = ${JSON.stringify(home)};
    const env = { PATH: process.env.PATH, HOME: home, COPILOT_HOME: home, COPILOT_OFFLINE: "true" };
    const client = new CopilotClient({ connection: ${connection}, baseDirectory: home, env, useLoggedInUser: false, logLevel: "error" });
    await client.start();
    console.log("ready");
    process.on("SIGTERM", () => client.forceStop().finally(() => process.exit()));
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    cwd: packageRoot,
    stdio: ["ignore", "pipe", "inherit"],
  });
  return until(child);
}

/** Measures how long a new process takes to its first output, and ends it. */
async function until(child: ChildProcess): Promise<number> {
  const started = performance.now();
  await new Promise<void>((ready, failed) => {
    child.stdout?.once("data", () => ready());
    child.once("exit", (code) => failed(new Error(`a process ended with ${code} before it was ready`)));
  });
  const took = performance.now() - started;
  await end(child);
  return took;
}
