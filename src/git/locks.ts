import { existsSync, rmSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { readPlainAt } from "../lib/pinned/read.ts";
import { realOf } from "../lib/real-path.ts";

/** A lock this old belongs to no git any more: it was cut off, together with the life it worked for. */
const STALE_MS = 10_000;
const LOOK_MS = 100;

/** The locks that a git cut off in a worktree leaves, all of them on what is the run's own: its index, its head, its branch. */
export function locksOf(worktree: string, branch: string): string[] {
  const own = gitFolder(worktree);
  if (own === undefined) return [];
  const common = resolve(own, textOf(join(own, "commondir")).trim());
  return [join(own, "index.lock"), join(own, "HEAD.lock"), join(common, "refs", "heads", `${branch}.lock`)];
}

function gitFolder(worktree: string): string | undefined {
  const file = join(worktree, ".git");
  const [, folder] = /^gitdir: (.+)$/m.exec(textOf(file)) ?? [];
  return folder !== undefined && existsSync(join(folder, "commondir")) ? folder : undefined;
}

/** The text of one of git's own small files; "" if what an agent put in its place is no plain file. */
function textOf(file: string): string {
  const read = readPlainAt(join(realOf(dirname(file)), basename(file)), 10_000);
  return "bytes" in read ? read.bytes.toString("utf8") : "";
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
