import { statSync } from "node:fs";
import { dirname, relative, sep } from "node:path";
import { usageError } from "./errors.ts";
import { realOf } from "./real-path.ts";

/** Refuses a folder that is, holds or lies in the data folder, by whatever path it is reached: what is kept there is no project. */
export function refuseDataFolder(home: string, folder: string): void {
  const [own, given] = [realOf(home), realOf(folder)];
  const isWithin =
    identity(own) !== undefined && ancestors(given).some((path) => path === own || identity(path) === identity(own));
  const holdsIt = identity(given) !== undefined && ancestors(own).some((path) => identity(path) === identity(given));
  if (isWithin && isWorktree(own, given)) return;
  if (isWithin || holdsIt)
    throw usageError(
      `${folder}: ${isWithin ? "is or lies in" : "holds"} ${own}, IO's data folder, and cannot be a project. Name a folder apart from it.`,
    );
}

/** Whether a folder is one in which a run of IO's own works. */
function isWorktree(home: string, folder: string): boolean {
  const [runs, , worktrees, name] = relative(home, folder).split(sep);
  return runs === "runs" && worktrees === "worktrees" && name !== undefined;
}

function ancestors(path: string): string[] {
  const above = dirname(path);
  return above === path ? [path] : [path, ...ancestors(above)];
}

/** Stays the same however a folder is spelled or mounted. */
function identity(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path);
    return `${dev}:${ino}`;
  } catch {
    // What is not there, or not to be looked at, is no folder that could be worked in.
    return undefined;
  }
}
