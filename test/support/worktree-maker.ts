import { dirname } from "node:path";
import { setAside } from "../../src/git/aside.ts";
import { beginMerge, mergeInto } from "../../src/git/merges.ts";
import { openRepo } from "../../src/git/repository.ts";
import { addWorktree, treeOf } from "../../src/git/worktrees.ts";
import { walledGit } from "./git.ts";

/** What to do in the worktree, and with which commit. */
export type Work = { merge: string } | { begin: string } | { aside: string };

/**
 * Creates a worktree with its submodules and, if told to, works in it. Runs in a separate process that a test kills without
 * warning.
 */
const [project, path, home, told] = process.argv.slice(2) as [string, string, string, string | undefined];
// In the sandbox, git ends with the process that started it.
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
