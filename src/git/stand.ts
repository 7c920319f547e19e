import { lstatSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { smallTextAt } from "../lib/pinned/read.ts";
import type { SandboxHeight } from "../lib/safety-config.ts";
import type { Stand } from "../process/sandbox.ts";
import { repositoryAbove } from "./repository.ts";

export interface StandDeps {
  projectPath: string;
  /** The folder of the run or the task, with its worktrees. */
  folder: string;
  /** The height that the project asks for. */
  height?: SandboxHeight | undefined;
}

/**
 * What commands may do in a folder that is worked in. Those in a worktree can write it and neither the checkout it came from
 * nor that one's branches: what they leave in the tree is committed for them.
 */
export function createStands({ projectPath, folder, height }: StandDeps): (cwd: string) => Stand {
  const worktrees = join(folder, "worktrees");
  const marker = repositoryAbove(projectPath);
  const common = marker === undefined ? undefined : commonFolder(marker);
  const held = height === undefined ? {} : { height };
  return (cwd) => {
    const [name = ".."] = relative(worktrees, cwd).split(sep);
    if (name === "" || name === ".." || marker === undefined || common === undefined) return held;
    const place = join(worktrees, name);
    return { ...held, place, readable: [common], frozen: [dirname(marker), common, join(place, ".git")] };
  };
}

/** The folder with the objects and branches, which a checkout that is itself a worktree has elsewhere; a submodule's is its own. */
function commonFolder(marker: string): string {
  if (lstatSync(marker).isDirectory()) return marker;
  const named = smallTextAt(marker)
    ?.replace(/^gitdir:/, "")
    .trim();
  const own = resolve(dirname(marker), named ?? "");
  const common = smallTextAt(join(own, "commondir"))?.trim();
  return common === undefined ? own : resolve(own, common);
}
