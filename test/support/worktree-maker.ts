import { dirname } from "node:path";
import { setAside } from "../../src/git/aside.ts";
import { beginMerge, mergeInto } from "../../src/git/merges.ts";
import { openRepo } from "../../src/git/repository.ts";
import { addWorktree, treeOf } from "../../src/git/worktrees.ts";
import { walledGit } from "./git.ts";

/** What is done in a worktree, and with which commit. */
export type Work = { merge: string } | { begin: string } | { aside: string };

/**
 * Makes a worktree with its submodules, and works in it if it is told to, in a process of its own that somebody ends without
 * warning.
 */
const [project, path, home, told] = process.argv.slice(2) as [string, string, string, string | undefined];
// Behind the wall a git ends with whoever began it.
const found = (await openRepo(walledGit(home).git, project))!;
const repo = { ...found, git: found.git.with({ writable: [dirname(path)] }) };
await addWorktree(repo, { path, branch: "work", base: repo.head!, kept: told !== undefined });
if (told !== undefined) {
  const work = JSON.parse(told) as Work;
  const tree = treeOf(repo, path, "work");
  if ("merge" in work) await mergeInto(repo, tree, { commit: work.merge, message: "Merge" });
  else if ("begin" in work) await beginMerge(tree, work.begin);
  else await setAside(tree, work.aside);
}
