import { existsSync, mkdirSync, readdirSync, renameSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Git } from "./command.ts";

/** Repositories inside repositories inside a worktree are looked for so many times. */
const MOST_ROUNDS = 10;

/** The submodules that a worktree has registered. */
export async function submodulesOf(git: Git, path: string): Promise<{ name: string; folder: string }[]> {
  if (!existsSync(join(path, ".gitmodules"))) return [];
  const listed = await git.run(path, ["config", "-f", ".gitmodules", "-z", "--get-regexp", "^submodule\\..*\\.path$"]);
  return listed.stdout.split("\0").flatMap((entry) => {
    const [, name, folder] = /^submodule\.(.*)\.path\n(.*)$/s.exec(entry) ?? [];
    return name === undefined || folder === undefined ? [] : [{ name, folder }];
  });
}

/**
 * Makes plain folders of the repositories that were made inside a worktree, as scaffolders do: git would write down no more
 * than the name of their last commit. Their `.git` is kept in the run's own folder; what was moved where.
 */
export async function unnest(git: Git, path: string): Promise<{ folder: string; keptAs: string }[]> {
  const moved: { folder: string; keptAs: string }[] = [];
  for (let round = 1; round <= MOST_ROUNDS; round += 1) {
    const nested = await nestedIn(git, path);
    if (nested.length === 0) break;
    for (const folder of nested) {
      const keptAs = placeFor(path);
      renameSync(join(path, folder, ".git"), keptAs);
      // Where it was already added as a repository, its files would still be passed over.
      await git.must(path, ["update-index", "--force-remove", "--", folder]);
      moved.push({ folder, keptAs });
    }
  }
  return moved;
}

async function nestedIn(git: Git, path: string): Promise<string[]> {
  const [untracked, tracked, submodules] = await Promise.all([
    git.must(path, ["ls-files", "--others", "--exclude-standard", "-z"], { maxOutput: 20_000_000 }),
    git.must(path, ["ls-files", "--stage", "-z"], { maxOutput: 20_000_000 }),
    submodulesOf(git, path),
  ]);
  const links = tracked.split("\0").filter((line) => line.startsWith("160000 "));
  const folders = [
    // Only a repository is listed as a folder here.
    ...untracked.split("\0").filter((name) => name.endsWith("/")),
    ...links.map((line) => line.slice(line.indexOf("\t") + 1)),
  ].map((name) => name.replace(/\/$/, ""));
  const registered = new Set(submodules.map(({ folder }) => folder));
  return [...new Set(folders)].filter((folder) => !registered.has(folder) && existsSync(join(path, folder, ".git")));
}

function placeFor(path: string): string {
  const folder = join(dirname(dirname(path)), "nested");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return join(folder, `${basename(path)}-${readdirSync(folder).length + 1}.git`);
}
