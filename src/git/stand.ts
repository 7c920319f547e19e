import { lstatSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import type { SandboxHeight } from "../home/safety-config.ts";
import { smallTextAt } from "../lib/pinned/read.ts";
import type { SandboxProfile } from "../process/sandbox.ts";
import { repositoryAbove } from "./repository.ts";

export interface StandDeps {
  projectPath: string;
  /** The folder of the run or task, with its worktrees. */
  folder: string;
  /** The sandbox height that the project requests. */
  height?: SandboxHeight | undefined;
  /** The other repositories that are changed together, and each one's worktree. */
  others?: readonly { projectPath: string; worktree: string }[];
}

/**
 * The sandbox profile for commands in a work folder. In a worktree they can write neither the checkout it came from nor its
 * branches: what they leave in the tree is committed for them.
 */
export function createStands({ projectPath, folder, height, others = [] }: StandDeps): (cwd: string) => SandboxProfile {
  const worktrees = join(folder, "worktrees");
  const marker = repositoryAbove(projectPath);
  const common = marker === undefined ? undefined : commonFolder(marker);
  const beside = others.map(({ projectPath: path, worktree }) => ({ worktree, ...repositoryOf(path) }));
  const held = height === undefined ? {} : { height };
  return (cwd) => {
    const [name = ".."] = relative(worktrees, cwd).split(sep);
    if (name === "" || name === ".." || marker === undefined || common === undefined) return held;
    const place = join(worktrees, name);
    const writable = beside.map(({ worktree }) => worktree).filter((worktree) => worktree !== place);
    return {
      ...held,
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

/** What commands may read but not write of the repository whose worktree they work in. */
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
