import { constants, existsSync } from "node:fs";
import { cp } from "node:fs/promises";
import { basename, join } from "node:path";
import type { Repo } from "./repository.ts";

/** Folders that hold what a project has installed; a worktree without them cannot run the project's own checks. */
const INSTALLED = new Set(["node_modules", ".venv", "venv"]);
const MOST = 50;

/**
 * Copies what the checkout has installed, and git ignores, into a worktree. A copy, not a link: what an agent installs
 * must not reach the user's checkout. File systems that can share blocks do.
 */
export async function bringDependencies(repo: Repo, path: string): Promise<void> {
  const folders = repo.ignored.filter((name) => INSTALLED.has(basename(name)));
  for (const folder of folders.slice(0, MOST)) {
    const target = join(path, folder);
    if (existsSync(target) || !existsSync(join(target, ".."))) continue;
    await cp(join(repo.root, folder), target, { recursive: true, verbatimSymlinks: true, mode: constants.COPYFILE_FICLONE });
  }
}
