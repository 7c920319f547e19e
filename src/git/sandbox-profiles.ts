import { lstatSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import type { SandboxHeight } from "../home/safety-config.ts";
import { smallTextAt } from "../lib/pinned/read.ts";
import type { SandboxProfile } from "../process/sandbox.ts";
import { repositoryAbove } from "./repository.ts";

export interface SandboxProfilesDeps {
  projectPath: string;
  /** The folder of the run or task, with its worktrees. */
  folder: string;
  /** The sandbox height that the project requests. */
  height?: SandboxHeight | undefined;
  /** The other repositories that are changed together, and each one's worktree. */
  others?: readonly { projectPath: string; worktree: string }[];
}

/**
 * Sandbox profiles for commands in a work folder. Commands in a worktree cannot write the original checkout or its branches;
 * IO commits what they change in the worktree.
 */
export function createSandboxProfiles({
  projectPath,
  folder,
  height,
  others = [],
}: SandboxProfilesDeps): (cwd: string) => SandboxProfile {
  const worktrees = join(folder, "worktrees");
  const marker = repositoryAbove(projectPath);
  const common = marker === undefined ? undefined : commonFolder(marker);
  const beside = others.map(({ projectPath: path, worktree }) => ({ worktree, ...repositoryOf(path) }));
  const base = height === undefined ? {} : { height };
  return (cwd) => {
    const [name = ".."] = relative(worktrees, cwd).split(sep);
    if (name === "" || name === ".." || marker === undefined || common === undefined) return base;
    const place = join(worktrees, name);
    const writable = beside.map(({ worktree }) => worktree).filter((worktree) => worktree !== place);
    return {
      ...base,
      place,
      ...(writable.length > 0 && { writable }),
      readable: [common, ...beside.flatMap(({ readable }) => readable)],
      frozen: [
        ...[dirname(marker), common, join(place, ".git")],
        ...beside.flatMap(({ worktree, frozen }) => [...frozen, join(worktree, ".git")]),
      ],
    };
  };
}

/** The parts of a worktree's repository that commands may read but not write. */
function repositoryOf(projectPath: string): { readable: string[]; frozen: string[] } {
  const marker = repositoryAbove(projectPath);
  if (marker === undefined) return { readable: [], frozen: [projectPath] };
  const common = commonFolder(marker);
  return { readable: [common], frozen: [dirname(marker), common] };
}

/** The folder of objects and branches, which is elsewhere for a linked worktree; a submodule has its own. */
function commonFolder(marker: string): string {
  if (lstatSync(marker).isDirectory()) return marker;
  const named = smallTextAt(marker)
    ?.replace(/^gitdir:/, "")
    .trim();
  const own = resolve(dirname(marker), named ?? "");
  const common = smallTextAt(join(own, "commondir"))?.trim();
  return common === undefined ? own : resolve(own, common);
}
