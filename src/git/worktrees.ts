import { existsSync, lstatSync, mkdirSync, readdirSync, renameSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { writeFileAtomic } from "../lib/atomic.ts";
import { codeOf, UserError } from "../lib/errors.ts";
import { makeFolder } from "../lib/pinned/folder.ts";
import { entriesAt } from "../lib/pinned/list.ts";
import { smallTextAt } from "../lib/pinned/read.ts";
import { realOf } from "../lib/real-path.ts";
import { removeTree } from "../process/remove-tree.ts";
import { locksOf, releaseLocks } from "./locks.ts";
import { unnest } from "./nested.ts";
import { merging } from "./refs.ts";
import type { Repo } from "./repository.ts";
import { ADD_FIRST, AND_STATE, HAS_LINKS, STATE } from "./scripts.ts";
import { fillSubmodules, resetSubmodules, saveSubmodules } from "./submodules.ts";
import { addAll, type Tree } from "./tree.ts";

export type { Tree } from "./tree.ts";

export interface Saved {
  tree: string;
  commit: string;
}

/**
 * Identifies a worktree by its repository's records. Its own `.git` file can be written by agents and could lead git to
 * their settings.
 */
export function treeOf(repo: Repo, path: string, branch: string): Tree {
  const own = recordOf(repo, path);
  if (own === undefined) throw new UserError(`${path} is no longer a worktree of ${repo.root}. Start a new run.`);
  return { git: repo.git.with({ env: { GIT_DIR: own, GIT_WORK_TREE: path } }), path, branch, repo, record: own };
}

/** The folder in which a repository keeps a worktree's records. */
function recordOf({ commonDir }: Repo, path: string): string | undefined {
  const folder = join(realOf(commonDir), "worktrees");
  // The path itself may have become a link; its parent folder is ours.
  const wanted = join(realOf(dirname(path)), basename(path), ".git");
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return names.map((name) => join(folder, name)).find((each) => worktreeIn(each) === wanted);
}

/** The worktree's path in its record; undefined if git has not finished it or is about to remove it. */
function worktreeIn(record: string): string | undefined {
  return smallTextAt(join(record, "gitdir"))?.trim();
}

/**
 * Reconnects a worktree that moved with its folder, as in a restored home, by updating its record. `isLeft` tells whether
 * the old location is unused.
 */
function follow(repo: Repo, path: string, branch: string, isLeft: (old: string) => boolean): void {
  const folder = join(repo.commonDir, "worktrees");
  const names = existsSync(folder) ? readdirSync(folder) : [];
  const head = `ref: refs/heads/${branch}`;
  const record = names.map((name) => join(folder, name)).find((each) => smallTextAt(join(each, "HEAD"))?.trim() === head);
  const old = record === undefined ? undefined : worktreeIn(record);
  if (record === undefined || old === undefined) return;
  if (!isLeft(dirname(old)))
    throw new UserError(
      `The worktree of ${branch} belongs to ${dirname(old)}, where IO still works on it. Stop that one first, then resume.`,
    );
  writeFileAtomic(join(path, ".git"), `gitdir: ${record}\n`);
  writeFileAtomic(join(record, "gitdir"), `${join(realOf(dirname(path)), basename(path), ".git")}\n`);
}

/** Git prunes worktrees that it cannot see, unless they are locked; in a sandbox it sees few of them. */
export const LOCKED = ["--lock", "--reason", "in use by IO"] as const;

/**
 * Creates a worktree on a branch of its own, or finds it. A `kept` one may contain work and is not changed. Worktrees of
 * one repository are created one after another, each with one git worker per processor.
 */
export async function addWorktree(
  repo: Repo,
  {
    path,
    branch,
    base,
    kept = false,
    isLeft = () => false,
  }: { path: string; branch: string; base: string; kept?: boolean; isLeft?: (old: string) => boolean },
): Promise<"made" | "found"> {
  const { git, root } = repo;
  if (kept) relink(repo, path);
  if (existsSync(join(path, ".git"))) {
    if (recordOf(repo, path) === undefined) follow(repo, path, branch, isLeft);
    const record = recordOf(repo, path);
    if (kept) {
      await releaseLocks(record === undefined ? [] : locksOf(record, repo.commonDir, branch));
      return "found";
    }
    if (record !== undefined && (await isFresh(treeOf(repo, path, branch)))) {
      await fillSubmodules(repo, { path, record });
      return "found";
    }
  }
  // Its creation was interrupted or somebody deleted it, so nobody is using it.
  if (existsSync(join(path, ".git")) || recordOf(repo, path) !== undefined) await discard(repo, path);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const add = ["-c", "checkout.workers=0", "worktree", "add", "-q", ...LOCKED];
  const fresh = await git.run(root, [...add, "--no-track", "-b", branch, path, base], { alone: true });
  if (fresh.code === 0) {
    await fillSubmodules(repo, treeOf(repo, path, branch));
    return "made";
  }
  const known = await git.run(root, ["rev-parse", "-q", "--verify", `refs/heads/${branch}`]);
  const wanted = known.code === 0 ? [path, branch] : ["-b", branch, path, base];
  await git.must(root, [...add, ...wanted], { alone: true });
  await fillSubmodules(repo, treeOf(repo, path, branch));
  return "found";
}

/** Reconnects a worktree whose `.git` was deleted but whose files were not. */
function relink(repo: Repo, path: string): void {
  const record = recordOf(repo, path);
  const marker = join(path, ".git");
  if (record === undefined || entriesAt(realOf(path)).length === 0 || existsSync(marker)) return;
  writeFileAtomic(marker, `gitdir: ${record}\n`);
}

async function isFresh({ git, path, branch }: Tree): Promise<boolean> {
  const on = await git.run(path, ["symbolic-ref", "-q", "--short", "HEAD"]);
  const whole = await git.run(path, ["rev-parse", "-q", "--verify", "HEAD"]);
  const filled = await git.run(path, ["diff", "--no-ext-diff", "--quiet", "HEAD"]);
  return on.stdout.trim() === branch && whole.code === 0 && filled.code === 0;
}

/** The project's folder in a worktree, created if missing. A link planted there is not followed. */
export function placeBelow(path: string, prefix: string): string {
  const place = join(realOf(path), prefix);
  try {
    makeFolder(place, 0o777).close();
  } catch (error) {
    if (!["ELOOP", "ENOTDIR", "EEXIST"].includes(codeOf(error) ?? "")) throw error;
    throw new UserError(`${prefix} is no folder in ${path}: a file or a link stands in its place. Nothing was done there.`);
  }
  return join(path, prefix);
}

/** More names would not fit into one command. */
const RESTORE_BATCH = 1_000;

/** Commits everything in a worktree; without a change it returns the existing commit. */
export async function commitAll(
  { identity }: Pick<Repo, "identity">,
  tree: Tree,
  message: string,
  note?: (text: string) => void,
): Promise<Saved> {
  const { git, path } = tree;
  await saveSubmodules(tree, message, { identity }, note);
  const commit = (script: string) =>
    git.run(path, [...identity, "commit", "-q", "--no-verify", "--allow-empty-message", "-F", "-"], { input: message, script });
  let made = await commit(ADD_FIRST);
  if (made.code === HAS_LINKS) {
    for (const { folder, keptAs } of await unnest(git, path)) {
      note?.(`${folder} was a repository of its own in the tree; its files are in the branch, its history is kept in ${keptAs}`);
    }
    const leftOut = await addAll(git, path);
    if (leftOut.length > 0) note?.(`left out of the branch, because they cannot be read: ${leftOut.slice(0, 20).join(", ")}`);
    made = await commit(AND_STATE);
    if (leftOut.length > 0) await restoreTracked(tree, leftOut);
  }
  if (made.code === 0) return stateIn(tree, made.stdout);
  if (!/nothing to commit|nothing added to commit|working tree clean/.test(made.output)) {
    throw new UserError(`git commit failed in ${path}: ${made.output.trim().slice(-600) || `${made.ending}, ${made.code}`}`);
  }
  return current(tree);
}

/** A check or an install may change every file of a large project. */
const MOST_STATUS = 100_000_000;

/** Compares a worktree with its last commit: the changed files, the new ones, and whether there are neither. */
export async function changedIn({ git, path }: Tree): Promise<{ files: string[]; untracked: string[]; clean: boolean }> {
  const args = ["status", "--porcelain=v2", "--untracked-files=all", "--no-renames", "-z"];
  const { code, stdout } = await git.run(path, args, { maxOutput: MOST_STATUS });
  const lines = stdout.split("\0").filter((line) => line !== "");
  return {
    files: lines.flatMap((line) => changedFile(line) ?? []),
    untracked: lines.flatMap((line) => (line.startsWith("? ") ? [line.slice(2)] : [])),
    clean: code === 0 && lines.length === 0,
  };
}

/** Changes in a worktree: changed files, and the topmost new and ignored entries. Folders end with a slash. */
export interface Besides {
  files: string[];
  untracked: string[];
  ignored: string[];
}

export async function besidesIn({ git, path }: Pick<Tree, "git" | "path">): Promise<Besides> {
  const args = ["status", "--porcelain=v2", "--untracked-files=normal", "--ignored=traditional", "--no-renames", "-z"];
  const { stdout } = await git.run(path, args, { maxOutput: MOST_STATUS });
  const lines = stdout.split("\0").filter((line) => line !== "");
  const marked = (mark: string) => lines.flatMap((line) => (line.startsWith(mark) ? [line.slice(mark.length)] : []));
  return { files: lines.flatMap((line) => changedFile(line) ?? []), untracked: marked("? "), ignored: marked("! ") };
}

/** The committed file that a status line is about. A submodule with untracked files has not changed. */
function changedFile(line: string): string | undefined {
  const words = line.split(" ");
  const before = words[0] === "1" ? 8 : words[0] === "u" ? 10 : undefined;
  return before === undefined || words[2] === "S..U" ? undefined : words.slice(before).join(" ");
}

/** Restores files, and submodules with everything in them, to the last commit. */
export async function restoreFiles(tree: Tree, files: readonly string[]): Promise<void> {
  const { git, path } = tree;
  await resetSubmodules(tree, files);
  const listed = ["--pathspec-from-file=-", "--pathspec-file-nul"];
  const input = files.map((file) => `${pathspecOf(file)}\0`).join("");
  await git.must(path, ["restore", "--source=HEAD", "--staged", "--worktree", ...listed], { input });
}

/** Bytes of a name that are not UTF-8 were lost when git's output was read: a pattern stands for them. */
function pathspecOf(file: string): string {
  if (!file.includes("\ufffd")) return `:(top,literal)${file}`;
  return `:(top,glob)${file.replace(/[\\*?[\]]/g, "\\$&").replace(/\ufffd+/g, "*")}`;
}

/** Restores files to the last commit, so that checks see exactly what was committed. */
async function restoreTracked(tree: Tree, files: readonly string[]): Promise<void> {
  const { git, path } = tree;
  const listed = await git.must(path, ["--literal-pathspecs", "ls-files", "-z", "--", ...files.slice(0, RESTORE_BATCH)]);
  const tracked = listed.split("\0").filter((file) => file !== "");
  if (tracked.length > 0) await restoreFiles(tree, tracked);
}

/** Commits the changes to tracked files, but no new files. */
export async function commitChanged({ identity }: Pick<Repo, "identity">, tree: Tree, message: string): Promise<Saved> {
  const { git, path } = tree;
  await saveSubmodules(tree, message, { identity });
  const made = await git.run(path, [...identity, "commit", "-q", "-a", "--no-verify", "-F", "-"], {
    input: message,
    script: AND_STATE,
  });
  return made.code === 0 ? stateIn(tree, made.stdout) : current(tree);
}

/** The commit and tree of a worktree; it must still be on its own branch. */
export async function current(tree: Tree): Promise<Saved> {
  return stateIn(tree, await tree.git.must(tree.path, STATE));
}

/** The same, parsed from the end of a command's output. */
export function stateIn({ path, branch }: Tree, told: string): Saved {
  const [commit = "", tree = "", on = ""] = told.trim().split("\n").slice(-3);
  if (on !== `refs/heads/${branch}`) {
    throw new UserError(
      `${path} is no longer on its branch ${branch} but on ${on}: the agent switched it. Switch it back, then resume.`,
    );
  }
  return { commit, tree };
}

/** The name of a worktree's folder while it is being deleted. */
export const LEAVING = ".leaving-";

/** Removes a worktree, unless it contains work that is committed nowhere. Completes an interrupted removal. */
export async function removeWorktree(
  repo: Repo,
  path: string,
  branch: string,
  { evenWithWork = false } = {},
): Promise<"removed" | "kept"> {
  const record = recordOf(repo, path);
  if (existsSync(path) && !evenWithWork && (record === undefined || (await holdsWork(treeOf(repo, path, branch))))) return "kept";
  await discard(repo, path);
  return "removed";
}

/** Removes one worktree and its records; git's own commands would examine all of them. */
async function discard(repo: Repo, path: string): Promise<void> {
  const record = recordOf(repo, path);
  const folder = realOf(dirname(path));
  const [own, leaving] = [join(folder, basename(path)), join(folder, `${LEAVING}${basename(path)}`)];
  if (lstatSync(own, { throwIfNoEntry: false })) {
    // Rename first, so that an interrupted removal does not look like a worktree whose files somebody deleted.
    await removeTree(leaving);
    renameSync(own, leaving);
  }
  if (record !== undefined) await removeTree(record);
  await removeTree(leaving);
}

/** Whether a worktree or its submodules contain something that no branch has. */
export async function holdsWork({ git, path, record }: Tree): Promise<boolean> {
  if (merging(record)) return true;
  const status = await git.run(path, ["status", "--porcelain", "--untracked-files=all", "--ignore-submodules=none"]);
  if (status.code !== 0 || status.stdout.trim() !== "") return true;
  if (!existsSync(join(path, ".gitmodules"))) return false;
  const found = "git branch -r --contains HEAD | grep -q . || echo loose";
  const loose = await git.run(path, ["submodule", "--quiet", "foreach", "--recursive", found]);
  return loose.code !== 0 || loose.stdout.includes("loose");
}

/** Deletes branches whose commits are all contained in a ref. */
export async function dropMerged({ git, root }: Repo, branches: readonly string[], into: string): Promise<void> {
  if (branches.length === 0) return;
  const refs = branches.map((branch) => `refs/heads/${branch}`);
  const format = "--format=%(refname) %(objectname)";
  const { code, stdout } = await git.run(root, ["for-each-ref", `--merged=${into}`, format, ...refs]);
  const merged = stdout.split("\n").filter((line) => refs.includes(line.split(" ", 1)[0]!));
  if (code !== 0 || merged.length === 0) return;
  await git.run(root, ["update-ref", "--stdin"], { input: merged.map((line) => `delete ${line}\n`).join("") });
}
