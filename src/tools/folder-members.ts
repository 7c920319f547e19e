import { lstatSync, readdirSync, type Stats } from "node:fs";
import { join } from "node:path";

/** How far apart the clock of a file system and our own may be. */
const SLACK_MS = 2_000;

export interface Clocks {
  /** The time of day, as files are dated by. */
  now: () => number;
  /** A time that nobody sets. */
  elapsed: () => number;
}

/**
 * Tells whether a file is one of those in a folder, under whatever other name it was found. Giving a file a further name, or
 * moving it, sets the time of its last change, which nobody can set back: so what has not changed since the folder was last
 * walked, and was not there then, is not there now.
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

/** What stays the same however a file is spelled, linked or mounted. */
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
    // A folder that is not made yet holds nothing.
    return [];
  }
}
