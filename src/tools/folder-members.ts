import { lstatSync, readdirSync, type Stats } from "node:fs";
import { join } from "node:path";

/** How far the clock of a file system may differ from ours. */
const SLACK_MS = 2_000;

export interface Clocks {
  /** The time of day, by which files are dated. */
  now: () => number;
  /** A monotonic time, which nobody can set. */
  elapsed: () => number;
}

/**
 * Tells whether a file is one of those in a folder, whatever name it was found under. Linking or moving a file updates its
 * ctime, which nobody can set back. So a file that was not in the folder when it was last walked, and has not changed since, is
 * not in it now.
 */
export function createFolderMembers(
  folder: string,
  { now, elapsed }: Clocks = { now: Date.now, elapsed: () => performance.now() },
): (stats: Stats) => boolean {
  let members = new Set<string>();
  let walked = { now: Number.NEGATIVE_INFINITY, elapsed: 0 };

  return (stats) => {
    const clockWasSet = Math.abs(now() - walked.now - (elapsed() - walked.elapsed)) > SLACK_MS / 2;
    const isSettled = !clockWasSet && stats.ctimeMs < walked.now - SLACK_MS;
    if (isSettled && !members.has(idOf(stats))) return false;
    walked = { now: now(), elapsed: elapsed() };
    members = new Set(filesIn(folder));
    return members.has(idOf(stats));
  };
}

/** Identifies a file however it is spelled, linked or mounted. */
export function idOf({ dev, ino }: Stats): string {
  return `${dev}:${ino}`;
}

function filesIn(folder: string, found: string[] = []): string[] {
  for (const name of entries(folder)) {
    const path = join(folder, name);
    const stats = lstatSync(path, { throwIfNoEntry: false });
    if (stats?.isDirectory()) filesIn(path, found);
    else if (stats) found.push(idOf(stats));
  }
  return found;
}

export function entries(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch {
    // A folder that does not exist yet is empty.
    return [];
  }
}
