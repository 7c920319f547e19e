import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { isAlive } from "../../src/lib/alive.ts";
import { codeOf } from "../../src/lib/errors.ts";
import { exec } from "../../src/process/exec.ts";
import { hasEnvironment } from "../../src/process/processes.ts";

/** Every process that belongs to a home: the daemon, its runtimes, and what they started. */
export function processesOn(home: string): number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 1 && pid !== process.pid && isAlive(pid))
    .filter((pid) => hasEnvironment(pid, "IO_HOME", home) || hasEnvironment(pid, "COPILOT_HOME", join(home, "sessions")));
}

/** Kills a child and waits until it is gone. Does nothing to one that has already exited. */
export async function killed(child: ChildProcess): Promise<void> {
  const isOver = () => child.exitCode !== null || child.signalCode !== null;
  const gone = isOver() ? undefined : once(child, "exit");
  child.kill("SIGKILL");
  await gone;
}

/** Kills a child that leads a process group, and the whole group. */
export async function killedAll(child: ChildProcess): Promise<void> {
  try {
    process.kill(-child.pid!, "SIGKILL");
  } catch (error) {
    if (codeOf(error) !== "ESRCH") throw error;
  }
  await killed(child);
}

/** How many `sleep` processes of a test are running. `mark` is the unusual duration that identifies them. */
export async function sleeping(mark: string): Promise<number> {
  const { stdout } = await exec("ps", ["-eo", "stat,comm,args"]);
  return stdout.split("\n").filter((line) => / sleep +sleep /.test(line) && line.includes(mark) && !line.startsWith("Z")).length;
}
