import { readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** A lock this old belongs to no git any more: it was cut off, together with the life it worked for. */
const STALE_MS = 10_000;
const LOOK_MS = 100;

/** The locks that a git cut off in a worktree has left, all of them on what is the run's own: its index, its heads, its branch. */
export function locksOf(record: string, commonDir: string, branch: string): string[] {
  const left = readdirSync(record).filter((name) => /^(?:index|[A-Z_]+)\.lock$/.test(name));
  return [...left.map((name) => join(record, name)), join(commonDir, "refs", "heads", `${branch}.lock`)];
}

/** Takes away locks that were left behind. One that is young may still be held by a git at its end, and is waited for. */
export async function releaseLocks(files: readonly string[], now: () => number = Date.now): Promise<void> {
  for (const file of files) {
    for (let lock = statSync(file, { throwIfNoEntry: false }); lock; lock = statSync(file, { throwIfNoEntry: false })) {
      if (now() - lock.mtimeMs >= STALE_MS) rmSync(file, { force: true });
      else await sleep(LOOK_MS);
    }
  }
}
