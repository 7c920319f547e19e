import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { SandboxHeight } from "../src/home/safety-config.ts";
import { exec } from "../src/process/exec.ts";
import { createSandbox, type Sandbox } from "../src/process/sandbox.ts";
import { measure } from "./run.ts";
import { describe, judge, median, temporaryFolder } from "./support.ts";

const COMMAND: [string, ...string[]] = ["/bin/sh", "-c", "true"];
const HEIGHTS = ["secrets", "project", "workspace"] as const;

/** Measures what the sandbox costs: a command at each height beside one outside, and a run in workspaces beside one without. */
export async function run(args: string[]): Promise<void> {
  const rounds = Number(args[0] ?? 60);
  const latency = Number(args[1] ?? 300);
  await commands(rounds);
  await runs(latency);
}

/** Runs the commands in turn, so that other load on the machine affects all of them alike. */
async function commands(rounds: number): Promise<void> {
  const folder = temporaryFolder();
  const home = join(folder.path, "io");
  const project = join(folder.path, "project");
  for (const path of [join(home, "wiki", "pages"), join(home, "skills"), project]) mkdirSync(path, { recursive: true });
  const walls = HEIGHTS.map((height) => ({ height, sandbox: sandboxAt(height, home), times: [] as number[] }));
  const outside: number[] = [];
  const timed = async (program: string, rest: string[]) => {
    const result = await exec(program, rest, { cwd: project });
    if (result.code !== 0) throw new Error(`a command failed: ${result.output}`);
  };
  for (let round = -5; round < rounds; round += 1) {
    const began = performance.now();
    await timed(COMMAND[0], COMMAND.slice(1));
    if (round >= 0) outside.push(performance.now() - began);
    for (const { sandbox, times } of walls) {
      const from = performance.now();
      const [program, ...rest] = await sandbox.wrap(COMMAND, project);
      await timed(program, rest);
      if (round >= 0) times.push(performance.now() - from);
    }
  }
  folder.remove();
  console.log(describe("outside", outside));
  for (const { height, times } of walls) {
    console.log(`${describe(height, times)}, ${(median(times) / median(outside)).toFixed(2)} times`);
    judge(`${height}, more than outside`, median(times) - median(outside), 15, " ms");
  }
}

async function runs(latency: number): Promise<void> {
  const command = "ls > listed && rm listed";
  const times = { workspace: [] as number[], none: [] as number[] };
  for (let round = 0; round < 3; round += 1) {
    const none = await measure(3, latency, { sandbox: () => outsideAll, command });
    const workspace = await measure(3, latency, { sandbox: (home) => sandboxAt("workspace", home), command });
    times.none.push(none.wallMs);
    times.workspace.push(workspace.wallMs);
  }
  console.log(describe("a run without a wall", times.none));
  console.log(describe("a run in workspaces", times.workspace));
  judge("a run in workspaces, times one without", median(times.workspace) / median(times.none), 1.1);
}

function sandboxAt(sandbox: SandboxHeight, home: string): Sandbox {
  return createSandbox({
    home,
    guard: { readOnly: () => [] },
    settings: () => ({ sandbox, sandboxRead: [], sandboxNetwork: true }),
  });
}

const outsideAll: Sandbox = {
  status: async () => ({ kind: "open", detail: "none, for comparison" }),
  height: () => "secrets",
  wrap: async (argv) => [...argv],
};
