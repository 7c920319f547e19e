import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { isAlive } from "../../src/lib/alive.ts";
import { codeOf } from "../../src/lib/errors.ts";
import { exec } from "../../src/process/exec.ts";
import { hasEnvironment } from "../../src/process/processes.ts";

/** Every process that works on a home: the daemon, its runtimes, and what they started. */
export function processesOn(home: string): number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 1 && pid !== process.pid && isAlive(pid))
    .filter((pid) => hasEnvironment(pid, "IO_HOME", home) || hasEnvironment(pid, "COPILOT_HOME", join(home, "sessions")));
}

/** Ends a child at once, and waits until it is gone; one that has ended meanwhile is gone. */
export async function killed(child: ChildProcess): Promise<void> {
  const isOver = () => child.exitCode !== null || child.signalCode !== null;
  const gone = isOver() ? undefined : once(child, "exit");
  child.kill("SIGKILL");
  await gone;
}

/** The same for a child that leads a group, and everything in it. */
export async function killedAll(child: ChildProcess): Promise<void> {
  try {
    process.kill(-child.pid!, "SIGKILL");
  } catch (error) {
    if (codeOf(error) !== "ESRCH") throw error;
  }
  await killed(child);
}

/** How many `sleep` there are that a test began and marked by how long they take. */
export async function sleeping(mark: string): Promise<number> {
  const { stdout } = await exec("ps", ["-eo", "stat,comm,args"]);
  return stdout.split("\n").filter((line) => / sleep +sleep /.test(line) && line.includes(mark) && !line.startsWith("Z")).length;
}
