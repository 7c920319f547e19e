import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { isAlive } from "../../lib/alive.ts";
import type { Log } from "../../lib/log.ts";
import { commandOf, hasEnvironment, waitForExit } from "../../process/processes.ts";

/** Where a runtime's owner records its pid; several processes may share one home. */
export function pidFileOf(folder: string, owner: number): string {
  return join(folder, `runtime-${owner}.pid`);
}

/** Ends a runtime that outlived its killed owner before its sessions are resumed: two would write the same files. */
export async function endLeftoverRuntimes(folder: string, log: Pick<Log, "warn">): Promise<void> {
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder)) {
    const owner = Number(/^runtime-(\d+)\.pid$/.exec(name)?.[1]);
    if (!owner || (owner !== process.pid && isAlive(owner))) continue;
    const file = join(folder, name);
    await endLeftover(Number.parseInt(readFileSync(file, "utf8"), 10), folder, log);
    rmSync(file, { force: true });
  }
}

async function endLeftover(pid: number, folder: string, log: Pick<Log, "warn">): Promise<void> {
  if (!Number.isInteger(pid) || pid < 2 || !isAlive(pid)) return;
  if (!(await commandOf(pid)).includes("copilot") || hasEnvironment(pid, "COPILOT_HOME", folder) === false) return;
  if (await waitForExit(pid, 1_500)) return;
  log.warn("a runtime of an earlier life was still there and was ended", { pid });
  kill(pid);
  await waitForExit(pid, 2_000);
}

export function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has already ended.
  }
}
