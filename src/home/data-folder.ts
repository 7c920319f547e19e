import { readdirSync, statSync } from "node:fs";
import { basename, dirname, join, relative, sep } from "node:path";
import { usageError } from "../lib/errors.ts";
import type { FolderNames } from "../lib/folder-names.ts";
import { realOf } from "../lib/real-path.ts";

/**
 * The folders that a restore makes beside the data folder: the backup while it is unpacked, and the old data folder. Earlier
 * versions called the backup `restored` once it was checked.
 */
export type RestoreFolder = "restoring" | "restored" | "before";

/** The prefix of such folders' names. */
export const besideHome = (home: string, kind: RestoreFolder): string => `${home}.${kind}-`;

/** Where a restore works inside the data folder that it replaces, and the file with its progress. */
export const RESTORE_ROOM = ".restore";
export const RESTORE_NOTE = "progress.json";

/** The restore folders that exist. They contain the same secrets as the data folder. `home` is a real path. */
export async function findHomesBeside(home: string, namesIn: FolderNames): Promise<string[]> {
  // Without permission to list the folder, nothing in it can be found.
  return restoreFoldersIn(await namesIn(dirname(home)), home);
}

function homesBeside(home: string): string[] {
  try {
    return restoreFoldersIn(readdirSync(dirname(home)), home);
  } catch {
    return [];
  }
}

const restoreFoldersIn = (names: readonly string[], home: string): string[] =>
  names.flatMap((name) => (isRestoreFolder(home, name) ? [join(dirname(home), name)] : []));

/** Whether a restore creates folders by this name beside the data folder. */
export function isRestoreFolder(home: string, name: string): boolean {
  return (["restoring", "restored", "before"] as const).some((kind) => name.startsWith(basename(besideHome(home, kind))));
}

/** Refuses a folder that is, contains or is inside the data folder, however its path is written: it cannot be a project. */
export function refuseDataFolder(home: string, folder: string): void {
  const [own, given] = [realOf(home), realOf(folder)];
  const isWithin =
    identity(own) !== undefined && ancestors(given).some((path) => path === own || identity(path) === identity(own));
  const holdsIt = identity(given) !== undefined && ancestors(own).some((path) => identity(path) === identity(given));
  if (isWithin && isWorktree(own, given)) return;
  const isBeside = homesBeside(own).some((beside) => ancestors(given).some((path) => identity(path) === identity(beside)));
  if (isBeside) throw usageError(`${folder}: was made by a restore and holds a data folder, so it cannot be a project.`);
  if (isWithin || holdsIt)
    throw usageError(
      `${folder}: ${isWithin ? "is or lies in" : "holds"} ${own}, IO's data folder, and cannot be a project. Name a folder apart from it.`,
    );
}

/** Whether a folder is the worktree of one of IO's runs. */
function isWorktree(home: string, folder: string): boolean {
  const [runs, , worktrees, name] = relative(home, folder).split(sep);
  return runs === "runs" && worktrees === "worktrees" && name !== undefined;
}

function ancestors(path: string): string[] {
  const above = dirname(path);
  return above === path ? [path] : [path, ...ancestors(above)];
}

/** Identifies a folder, however its path is written or mounted. */
function identity(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path);
    return `${dev}:${ino}`;
  } catch {
    // A missing or inaccessible folder is no folder to work in.
    return undefined;
  }
}
