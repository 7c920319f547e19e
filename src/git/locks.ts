import { readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** A lock this old belongs to an interrupted git. */
const STALE_MS = 10_000;
const POLL_MS = 100;

/** Locks left by an interrupted git in a worktree, all on the run's own files: its index, heads and branch. */
export function locksOf(record: string, commonDir: string, branch: string): string[] {
  const left = readdirSync(record).filter((name) => /^(?:index|[A-Z_]+)\.lock$/.test(name));
  return [...left.map((name) => join(record, name)), join(commonDir, "refs", "heads", `${branch}.lock`)];
}

/** Removes stale locks. Waits for a recent one, which a finishing git may still hold. */
export async function releaseLocks(files: readonly string[], now: () => number = Date.now): Promise<void> {
  for (const file of files) {
    for (let lock = statSync(file, { throwIfNoEntry: false }); lock; lock = statSync(file, { throwIfNoEntry: false })) {
      if (now() - lock.mtimeMs >= STALE_MS) rmSync(file, { force: true });
      else await sleep(POLL_MS);
    }
  }
}
