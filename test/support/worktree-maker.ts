import { dirname } from "node:path";
import { mergeInto } from "../../src/git/merges.ts";
import { openRepo } from "../../src/git/repository.ts";
import { addWorktree, treeOf } from "../../src/git/worktrees.ts";
import { walledGit } from "./git.ts";

/**
 * Makes a worktree with its submodules, and merges a commit into it if one is given, in a process of its own that somebody
 * ends without warning.
 */
const [project, path, home, commit] = process.argv.slice(2) as [string, string, string, string | undefined];
// Behind the wall a git ends with whoever began it.
const found = (await openRepo(walledGit(home).git, project))!;
const repo = { ...found, git: found.git.with({ writable: [dirname(path)] }) };
await addWorktree(repo, { path, branch: "work", base: repo.head! });
if (commit !== undefined) await mergeInto(repo, treeOf(repo, path, "work"), { commit, message: "Merge" });
