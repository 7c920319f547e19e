import { mkdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { UserError } from "../lib/errors.ts";
import { openBelow, withFolder } from "../lib/pinned/folder.ts";
import { entriesOf } from "../lib/pinned/list.ts";
import { realOf } from "../lib/real-path.ts";
import { statsAt } from "../lib/stats-at.ts";
import { removeTree } from "../process/remove-tree.ts";
import type { Git } from "./command.ts";
import type { Hindrance } from "./lfs.ts";
import { releaseLocks } from "./locks.ts";
import { hasEntry, moveAside, submoduleAt, submodulesOf } from "./nested.ts";
import type { Repo } from "./repository.ts";
import type { Tree } from "./tree.ts";

/** How deep nested submodules are filled. */
const MAX_DEPTH = 5;

/** Whether the checked-out submodules can be brought into a worktree without fetching. */
export async function submoduleHindrance(repo: Repo): Promise<Hindrance> {
  const { git, root, head } = repo;
  if (head === null) return {};
  const empty: string[] = [];
  const behind: string[] = [];
  for (const { folder } of await submodulesOf(git, root)) {
    const commit = await linkedIn(git, root, folder);
    if (commit === undefined) continue;
    const own = submoduleAt(repo, folder);
    if (own === undefined) empty.push(folder);
    else if ((await git.run(own, ["cat-file", "-e", `${commit}^{commit}`], { env: { GIT_DIR: own } })).code !== 0)
      behind.push(folder);
  }
  return {
    ...(behind.length > 0 && {
      refused: `${behind.join(", ")}: the last commit names a state of this submodule that is not here, and a run fetches nothing. Say: git submodule update --init --recursive`,
    }),
    ...(empty.length > 0 && {
      note: `submodules that are not checked out are empty for the agents too: ${empty.join(", ")} (git submodule update --init)`,
    }),
  };
}

/** A tree whose submodules are filled, and the checkout they come from. */
interface Filling {
  git: Git;
  /** The root of the checkout, or of a submodule in it. */
  root: string;
  /** The folder of the checkout's repositories, including its submodules'. */
  commonDir: string;
  path: string;
  /** Git's records of the tree. */
  record: string;
  /** The worktree that contains all of it. */
  worktree: string;
}

/**
 * Fills a worktree's submodules from the checkout's own, where those exist; fetches nothing. `record` is the folder in which
 * the repository keeps them. Changes in them must have been committed before.
 */
export async function fillSubmodules(
  { git, root, commonDir }: Pick<Repo, "git" | "root" | "commonDir">,
  { path, record }: Pick<Tree, "path" | "record">,
): Promise<void> {
  await fill({ git, root, commonDir, path, record, worktree: path }, 1);
}

async function fill({ git: plain, path, record, ...at }: Filling, deep: number): Promise<void> {
  const git = plain.with({ env: { GIT_DIR: record, GIT_WORK_TREE: path } });
  for (const { name, folder } of await submodulesOf(git, path)) {
    const [source, place, module] = [join(at.root, folder), join(path, folder), join(record, "modules", name)];
    if (submoduleAt(at, folder) === undefined || !isFolderBelow(path, folder)) continue;
    const wasCut = isInterrupted(module);
    if (wasCut) await clearInterrupted(git, { module, path, folder, worktree: at.worktree });
    if (wasCut || !(await isFilled(git, { path, folder, module }))) {
      const force = wasCut ? ["--force"] : [];
      await git.must(path, ["--literal-pathspecs", "submodule", "--quiet", "update", "--init", ...force, "--", folder], {
        ...{ fetchBy: ["file"], readable: [source, at.commonDir] },
        settings: [`submodule.${name}.url=${source}`, `submodule.${name}.active=true`],
      });
    }
    if (deep < MAX_DEPTH) await fill({ ...at, git: plain, root: source, path: place, record: module }, deep + 1);
  }
}

function isFolderBelow(top: string, folder: string): boolean {
  const open = openBelow(top, folder);
  open?.close();
  return open !== undefined;
}

/** Whether git was interrupted while it checked out a submodule, leaving its files incomplete or mixed. */
function isInterrupted(module: string): boolean {
  const has = (name: string) => statsAt(join(module, name)) !== undefined;
  return statsAt(module) !== undefined && (has("index.lock") || !has("index"));
}

/** Removes an interrupted checkout. Without an index nobody has worked there; its files are moved aside. */
async function clearInterrupted(
  git: Git,
  { module, path, folder, worktree }: { module: string; path: string; folder: string; worktree: string },
): Promise<void> {
  await releaseLocks([join(module, "index.lock"), join(module, "HEAD.lock")]);
  const env = { GIT_DIR: module };
  const whole =
    statsAt(join(module, "index")) && (await git.run(module, ["rev-parse", "-q", "--verify", "HEAD"], { env })).code === 0;
  if (whole) return;
  await removeTree(join(realOf(dirname(module)), basename(module)));
  const above = dirname(folder);
  const isEmpty = withFolder(join(realOf(path), folder), (open) => entriesOf(open).length === 0);
  if (isEmpty || moveAside(path, above, basename(folder), worktree) === undefined) return;
  const parent = openBelow(path, above);
  if (parent) mkdirSync(parent.entry(basename(folder)));
  parent?.close();
}

async function isFilled(git: Git, { path, folder, module }: { path: string; folder: string; module: string }): Promise<boolean> {
  if (!hasEntry(path, folder, ".git") || statsAt(module) === undefined) return false;
  const [indexed, at] = await Promise.all([
    git.run(path, ["--literal-pathspecs", "ls-files", "--stage", "-z", "--", folder]),
    git.run(module, ["rev-parse", "-q", "--verify", "HEAD"], { env: { GIT_DIR: module } }),
  ]);
  return at.code === 0 && indexed.stdout.startsWith(`160000 ${at.stdout.trim()} 0\t`);
}

/**
 * Commits changes in a worktree's submodules and copies the commits to a branch in the checkout's submodules: the worktree's
 * submodules will be deleted, and a branch must not refer to missing commits.
 */
export async function saveSubmodules(
  tree: Tree,
  message: string,
  { identity }: Pick<Repo, "identity">,
  note: (text: string) => void = () => undefined,
): Promise<void> {
  const { git, path, branch, repo, record } = tree;
  for (const { name, folder } of await submodulesOf(git, path)) {
    const gitDir = join(record, "modules", name);
    if (statsAt(gitDir) === undefined || !hasEntry(path, folder, ".git")) continue;
    const inside = join(realOf(path), folder);
    const own = git.with({ env: { GIT_DIR: gitDir, GIT_WORK_TREE: inside } });
    if ((await own.must(inside, ["status", "--porcelain", "--untracked-files=all"])) !== "") {
      await own.must(inside, ["add", "-A"]);
      // Git resolves the folder by its path: through a planted link, another folder's files would be in the index.
      if (!hasEntry(path, folder, ".git"))
        throw new UserError(`${folder} was replaced while it was saved. Nothing was committed.`);
      await own.must(inside, [...identity, "commit", "-q", "--no-verify", "--allow-empty-message", "-F", "-"], {
        input: message,
      });
    }
    const commit = await own.must(inside, ["rev-parse", "HEAD"]);
    if (commit === (await linkedIn(git, path, folder))) continue;
    await copyToCheckout(repo, { gitDir, folder, commit, branch });
    await own.must(inside, ["update-ref", `refs/remotes/origin/${branch}`, commit]);
    note(
      `${folder} is a submodule and was changed: the commit ${commit.slice(0, 12)} is on its branch ${branch}. Push that before you push what names it`,
    );
  }
}

/** Restores a worktree's submodules, or those in these folders, to their last commits. */
export async function resetSubmodules({ git, path, record }: Tree, folders?: readonly string[]): Promise<void> {
  for (const { name, folder } of await submodulesOf(git, path)) {
    const gitDir = join(record, "modules", name);
    const isWanted = folders === undefined || folders.includes(folder);
    if (!isWanted || statsAt(gitDir) === undefined || !hasEntry(path, folder, ".git")) continue;
    const inside = join(realOf(path), folder);
    const own = git.with({ env: { GIT_DIR: gitDir, GIT_WORK_TREE: inside } });
    await own.must(inside, ["reset", "-q", "--hard", "HEAD"]);
    await own.must(inside, ["clean", "-q", "-fd"]);
  }
}

/** Copies a commit from a worktree's submodule to a branch of the checkout's submodule. */
async function copyToCheckout(
  repo: Repo,
  { gitDir, folder, commit, branch }: { gitDir: string; folder: string; commit: string; branch: string },
): Promise<void> {
  const { git, root } = repo;
  const theirs = submoduleAt(repo, folder);
  if (theirs === undefined)
    throw new UserError(
      `${folder} is a submodule that is not checked out in ${root}, so a change to it cannot be kept. Run: git submodule update --init ${folder}`,
    );
  const args = ["fetch", "-q", "--no-tags", "--no-write-fetch-head", gitDir, `+${commit}:refs/heads/${branch}`];
  await git.must(theirs, args, {
    ...{ fetchBy: ["file"], readable: [gitDir], writable: [theirs], env: { GIT_DIR: theirs } },
    settings: ["uploadpack.allowAnySHA1InWant=true"],
  });
}

/** The commit that the last commit records for a submodule folder. */
async function linkedIn(git: Git, path: string, folder: string): Promise<string | undefined> {
  const listed = await git.run(path, ["ls-tree", "--full-tree", "-z", "HEAD", "--", folder]);
  return /^160000 commit ([0-9a-f]+)\t/.exec(listed.stdout)?.[1];
}
