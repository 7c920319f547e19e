import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { writeFileAtomic } from "../lib/atomic.ts";
import { UserError } from "../lib/errors.ts";
import { smallTextAt } from "../lib/pinned/read.ts";
import { realOf } from "../lib/real-path.ts";
import { locksOf, releaseLocks } from "./locks.ts";
import { unnest } from "./nested.ts";
import { merging } from "./refs.ts";
import type { Repo } from "./repository.ts";
import { ADD_ALL, ADD_FIRST, AND_STATE, HAS_LINKS, STATE } from "./scripts.ts";
import { fillSubmodules, saveSubmodules } from "./submodules.ts";
import type { Tree } from "./tree.ts";

export type { Tree } from "./tree.ts";

export interface Saved {
  tree: string;
  commit: string;
}

/**
 * A worktree by what its repository says of it. The `.git` file in it is the agents' to write, and would lead git to settings
 * of theirs.
 */
export function treeOf(repo: Repo, path: string, branch: string): Tree {
  const own = recordOf(repo, path);
  if (own === undefined) throw new UserError(`${path} is no worktree of ${repo.root} any more. Start a new run.`);
  return { git: repo.git.with({ env: { GIT_DIR: own, GIT_WORK_TREE: path } }), path, branch, repo, record: own };
}

/** The folder in which a repository keeps what it knows of a worktree. */
function recordOf({ commonDir }: Repo, path: string): string | undefined {
  const folder = join(commonDir, "worktrees");
  const wanted = join(realOf(path), ".git");
  const names = existsSync(folder) ? readdirSync(folder) : [];
  return names.map((name) => join(folder, name)).find((each) => placeIn(each) === wanted);
}

/** Undefined for one that git has not finished, or is about to take away. */
function placeIn(record: string): string | undefined {
  return smallTextAt(join(record, "gitdir"))?.trim();
}

/**
 * Follows a worktree that was moved with the folder it lies in, as a restored home is: the record of its branch is led here.
 * `isLeft` says whether nobody works any more where it was.
 */
function follow(repo: Repo, path: string, branch: string, isLeft: (old: string) => boolean): void {
  const folder = join(repo.commonDir, "worktrees");
  const names = existsSync(folder) ? readdirSync(folder) : [];
  const head = `ref: refs/heads/${branch}`;
  const record = names.map((name) => join(folder, name)).find((each) => smallTextAt(join(each, "HEAD"))?.trim() === head);
  const old = record === undefined ? undefined : placeIn(record);
  if (record === undefined || old === undefined) return;
  if (!isLeft(dirname(old)))
    throw new UserError(
      `The worktree of ${branch} belongs to ${dirname(old)}, where IO still works on it. Stop that one first, then resume.`,
    );
  writeFileAtomic(join(path, ".git"), `gitdir: ${record}\n`);
  writeFileAtomic(join(record, "gitdir"), `${join(realOf(path), ".git")}\n`);
}

/**
 * Makes a worktree on a branch of its own, or finds it. One that is `kept` may hold work and is left as it is. Those of one
 * repository are made one after the other, each with as many workers as there are processors.
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
    // An earlier life was cut off while it made this: nobody has worked in it.
    await git.run(root, ["worktree", "unlock", path]);
    rmSync(path, { recursive: true, force: true });
  }
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const add = ["-c", "checkout.workers=0", "worktree", "add", "-q"];
  const fresh = await git.run(root, [...add, "--no-track", "-b", branch, path, base], { alone: true });
  if (fresh.code === 0) {
    await fillSubmodules(repo, treeOf(repo, path, branch));
    return "made";
  }
  await git.must(root, ["worktree", "prune"], { alone: true });
  const known = await git.run(root, ["rev-parse", "-q", "--verify", `refs/heads/${branch}`]);
  const wanted = known.code === 0 ? [path, branch] : ["-b", branch, path, base];
  await git.must(root, [...add, ...wanted], { alone: true });
  await fillSubmodules(repo, treeOf(repo, path, branch));
  return "found";
}

async function isFresh({ git, path, branch }: Tree): Promise<boolean> {
  const on = await git.run(path, ["symbolic-ref", "-q", "--short", "HEAD"]);
  const whole = await git.run(path, ["rev-parse", "-q", "--verify", "HEAD"]);
  const filled = await git.run(path, ["diff", "--no-ext-diff", "--quiet", "HEAD"]);
  return on.stdout.trim() === branch && whole.code === 0 && filled.code === 0;
}

/** Commits whatever is in a worktree; without a change it is the commit that is there. */
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
    await git.must(path, ADD_ALL);
    made = await commit(AND_STATE);
  }
  if (made.code === 0) return stateIn(tree, made.stdout);
  if (!/nothing to commit|nothing added to commit|working tree clean/.test(made.output)) {
    throw new UserError(`git commit failed in ${path}: ${made.output.trim().slice(-600) || `${made.ending}, ${made.code}`}`);
  }
  return current(tree);
}

/** What is no longer as in the last commit: its files that are changed, and whether anything is new or changed at all. */
export async function changedIn({ git, path }: Tree): Promise<{ files: string[]; clean: boolean }> {
  const { code, stdout } = await git.run(path, ["status", "--porcelain", "--untracked-files=all", "--no-renames", "-z"]);
  const lines = stdout.split("\0").filter((line) => line !== "");
  return {
    files: lines.filter((line) => !line.startsWith("?? ")).map((line) => line.slice(3)),
    clean: code === 0 && lines.length === 0,
  };
}

/** Commits those, and nothing that is new. */
export async function commitChanged({ identity }: Pick<Repo, "identity">, tree: Tree, message: string): Promise<Saved> {
  const { git, path } = tree;
  const made = await git.run(path, [...identity, "commit", "-q", "-a", "--no-verify", "-F", "-"], {
    input: message,
    script: AND_STATE,
  });
  return made.code === 0 ? stateIn(tree, made.stdout) : current(tree);
}

/** The commit and tree a worktree stands on; its branch has to be the one it was made with. */
export async function current(tree: Tree): Promise<Saved> {
  return stateIn(tree, await tree.git.must(tree.path, STATE));
}

/** The same, as the end of a command's output tells it. */
export function stateIn({ path, branch }: Tree, told: string): Saved {
  const [commit = "", tree = "", on = ""] = told.trim().split("\n").slice(-3);
  if (on !== `refs/heads/${branch}`) {
    throw new UserError(
      `${path} is no longer on its branch ${branch} but on ${on}: the agent switched it. Switch it back, then resume.`,
    );
  }
  return { commit, tree };
}

/** How the folder of a worktree is called while it is being deleted. */
export const LEAVING = ".leaving-";

/** Takes a worktree away, unless it holds work that is committed nowhere. Whatever an earlier life began of it is ended. */
export async function removeWorktree(
  repo: Repo,
  path: string,
  branch: string,
  { evenWithWork = false } = {},
): Promise<"removed" | "kept"> {
  const leaving = join(dirname(path), `${LEAVING}${basename(path)}`);
  const record = recordOf(repo, path);
  if (existsSync(path)) {
    if (!evenWithWork && (record === undefined || (await holdsWork(treeOf(repo, path, branch))))) return "kept";
    // In one step, so that one which is cut off half-way is not taken for a worktree whose files somebody deleted.
    rmSync(leaving, { recursive: true, force: true });
    renameSync(path, leaving);
  }
  if (record !== undefined) rmSync(record, { recursive: true, force: true });
  rmSync(leaving, { recursive: true, force: true });
  return "removed";
}

/** Whether there is something in a worktree, or in its submodules, that no branch has. */
export async function holdsWork({ git, path, record }: Tree): Promise<boolean> {
  if (merging(record)) return true;
  const status = await git.run(path, ["status", "--porcelain", "--untracked-files=all", "--ignore-submodules=none"]);
  if (status.code !== 0 || status.stdout.trim() !== "") return true;
  if (!existsSync(join(path, ".gitmodules"))) return false;
  const found = "git branch -r --contains HEAD | grep -q . || echo loose";
  const loose = await git.run(path, ["submodule", "--quiet", "foreach", "--recursive", found]);
  return loose.code !== 0 || loose.stdout.includes("loose");
}

/** Deletes those branches whose every commit another one has. */
export async function dropMerged({ git, root }: Repo, branches: readonly string[], into: string): Promise<void> {
  if (branches.length === 0) return;
  const refs = branches.map((branch) => `refs/heads/${branch}`);
  const format = "--format=%(refname) %(objectname)";
  const { code, stdout } = await git.run(root, ["for-each-ref", `--merged=refs/heads/${into}`, format, ...refs]);
  const merged = stdout.split("\n").filter((line) => refs.includes(line.split(" ", 1)[0]!));
  if (code !== 0 || merged.length === 0) return;
  await git.run(root, ["update-ref", "--stdin"], { input: merged.map((line) => `delete ${line}\n`).join("") });
}
