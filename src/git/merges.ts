import { existsSync } from "node:fs";
import { join } from "node:path";
import { UserError } from "../lib/errors.ts";
import type { ExecResult } from "../process/exec.ts";
import { asideRef, setAside } from "./aside.ts";
import type { Git } from "./command.ts";
import { isAncestor, merging } from "./refs.ts";
import { NAMELESS, type Repo } from "./repository.ts";
import { AND_STATE } from "./scripts.ts";
import { fillSubmodules } from "./submodules.ts";
import { current, type Saved, stateIn, type Tree } from "./worktrees.ts";

/** A finished merge: its commit, and the commit it merged. */
export interface Merge {
  commit: string;
  of: string;
}

/** Merges a commit into a worktree. On conflict it aborts and returns the conflicting files. */
export async function mergeInto(
  { identity }: Pick<Repo, "identity">,
  tree: Tree,
  { commit, message }: { commit: string; message: string },
): Promise<{ saved: Saved; conflicts: string[] }> {
  const { git, path } = tree;
  if (merging(tree.record)) await abortMerge(tree);
  const args = [...identity, "merge", "-q", "--no-ff", "--no-verify", "-m", message, commit];
  const merged = await mergeOnClean(tree, args, AND_STATE);
  if (merged.code === 0) {
    await fillSubmodules(tree.repo, tree);
    return { saved: stateIn(tree, merged.stdout), conflicts: [] };
  }
  const conflicts = await conflictsOf(git, path);
  if (merging(tree.record)) await git.must(path, ["merge", "--abort"]);
  if (conflicts.length === 0) throw new UserError(`git merge failed in ${path}: ${merged.output.trim().slice(-600)}`);
  return { saved: await current(tree), conflicts };
}

/** Merges. If the merge cannot start, cleans up after an interrupted merge and retries. */
async function mergeOnClean(tree: Tree, args: readonly string[], script?: string): Promise<ExecResult> {
  const merge = () => tree.git.run(tree.path, args, { ...(script !== undefined && { script }) });
  const merged = await merge();
  if (merged.code === 0 || merging(tree.record)) return merged;
  await abortMerge(tree);
  return merge();
}

/** Cleans a worktree after an interrupted merge. */
async function abortMerge(tree: Tree): Promise<void> {
  await setAside(tree, asideRef(tree.branch, "half-merged"));
  await tree.git.must(tree.path, ["reset", "-q", "--hard", "HEAD"]);
}

/**
 * Removes merge commits from the tip of a branch in its own clean worktree; returns the commit it then points to. A
 * fast-forward created no merge commit, so its commits stay.
 */
export async function dropMerges(tree: Tree, merges: readonly Merge[]): Promise<string> {
  const { git, path } = tree;
  const at = (await current(tree)).commit;
  let tip = at;
  for (let ours = true; ours; ) {
    const [, first, second] = (await git.must(path, ["rev-list", "--parents", "-n", "1", tip])).split(" ");
    ours = first !== undefined && merges.some(({ commit, of }) => commit === tip && of === second);
    if (ours) tip = first!;
  }
  if (tip !== at) {
    await git.must(path, ["reset", "-q", "--hard", tip]);
    await fillSubmodules(tree.repo, tree);
  }
  return tip;
}

/** Starts a merge and leaves the conflicts in the files for somebody to resolve. */
export async function beginMerge(tree: Tree, commit: string): Promise<string[]> {
  const { git, path, repo, record } = tree;
  if (!(await isAncestor(git, path, commit, "HEAD")) && !merging(record)) {
    const { output } = await mergeOnClean(tree, [...NAMELESS, "merge", "-q", "--no-commit", "--no-ff", commit]);
    if (!merging(record)) throw new UserError(`git merge failed in ${path}: ${output.trim().slice(-600)}`);
  }
  await refuseSubmoduleConflicts(git, path);
  await fillSubmodules(repo, tree);
  return conflictsOf(git, path);
}

/** Refuses submodule conflicts: they cannot be merged here, and a commit would silently choose one side. */
async function refuseSubmoduleConflicts(git: Git, path: string): Promise<void> {
  const unmerged = await git.must(path, ["ls-files", "--unmerged", "-z"], { maxOutput: 5_000_000 });
  const links = unmerged.split("\0").filter((line) => line.startsWith("160000 "));
  if (links.length === 0) return;
  const folders = [...new Set(links.map((line) => line.slice(line.indexOf("\t") + 1)))];
  await git.must(path, ["merge", "--abort"]);
  throw new UserError(
    `two streams changed the submodule ${folders.join(", ")}, which cannot be merged for them. Merge its branches there, then start a run for the rest.`,
  );
}

async function conflictsOf(git: Git, path: string): Promise<string[]> {
  const listed = await git.run(path, ["diff", "--no-ext-diff", "--name-only", "--diff-filter=U", "-z"]);
  return listed.stdout.split("\0").filter((name) => name !== "");
}

/** The files of a list that still contain conflict markers. */
export async function unsettled({ git, path }: Pick<Tree, "git" | "path">, files: readonly string[]): Promise<string[]> {
  const left = files.filter((file) => existsSync(join(path, file)));
  if (left.length === 0) return [];
  const marker = "^(<<<<<<<|>>>>>>>)( |$)";
  const found = await git.run(path, ["--literal-pathspecs", "grep", "--no-index", "-l", "-z", "-E", marker, "--", ...left]);
  if (found.code === 0) return found.stdout.split("\0").filter((name) => name !== "");
  if (found.code === 1 && found.stderr === "") return [];
  throw new UserError(`git grep failed in ${path}: ${found.output.trim().slice(-600)}`);
}
