import { existsSync, readdirSync, rmSync } from "node:fs";
import { join, sep } from "node:path";
import { UserError } from "../lib/errors.ts";
import type { Git } from "./command.ts";
import type { Hindrance } from "./lfs.ts";
import { releaseLocks } from "./locks.ts";
import { submodulesOf } from "./nested.ts";
import type { Repo } from "./repository.ts";
import type { Tree } from "./tree.ts";

/** Submodules inside submodules are filled so deep. */
const MOST_DEEP = 5;

/** Whether the submodules that are checked out can be brought into a worktree, from what is here. */
export async function submoduleHindrance({ git, root, head }: Repo): Promise<Hindrance> {
  if (head === null) return {};
  const empty: string[] = [];
  const behind: string[] = [];
  for (const { folder } of await submodulesOf(git, root)) {
    const commit = await linkedIn(git, root, folder);
    if (commit === undefined) continue;
    if (!existsSync(join(root, folder, ".git"))) empty.push(folder);
    else if ((await git.run(join(root, folder), ["cat-file", "-e", `${commit}^{commit}`])).code !== 0) behind.push(folder);
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

/**
 * Brings a worktree's submodules to what it names, from the checkout's own, where those are there; nothing comes from
 * elsewhere. `record` is where the repository keeps them. Whatever was done in them is committed before.
 */
export async function fillSubmodules(
  { git, root }: Pick<Repo, "git" | "root">,
  { path, record }: Pick<Tree, "path" | "record">,
  deep = 1,
): Promise<void> {
  for (const { name, folder } of await submodulesOf(git, path)) {
    const [source, place, module] = [join(root, folder), join(path, folder), moduleOf(record, name)];
    if (module === undefined || !existsSync(join(source, ".git"))) continue;
    const wasCut = isCut(module);
    if (wasCut) await clearCut(git, module, place);
    if (wasCut || !(await isFilled(git, path, folder))) {
      const force = wasCut ? ["--force"] : [];
      await git.must(path, ["--literal-pathspecs", "submodule", "--quiet", "update", "--init", ...force, "--", folder], {
        fetchBy: ["file"],
        settings: [`submodule.${name}.url=${source}`, `submodule.${name}.active=true`],
      });
    }
    if (deep < MOST_DEEP) await fillSubmodules({ git, root: source }, { path: place, record: module }, deep + 1);
  }
}

/** Where the repository keeps a submodule of a worktree; a name that leads elsewhere has none. */
function moduleOf(record: string, name: string): string | undefined {
  const module = join(record, "modules", name);
  return module.startsWith(`${join(record, "modules")}${sep}`) ? module : undefined;
}

/** Whether a git was ended while it brought a submodule, so that its files are not all there or not all of one commit. */
function isCut(module: string): boolean {
  return existsSync(module) && (existsSync(join(module, "index.lock")) || !existsSync(join(module, "index")));
}

/** Takes away what such a git left. Without an index nobody has ever worked there. */
async function clearCut(git: Git, module: string, place: string): Promise<void> {
  await releaseLocks([join(module, "index.lock"), join(module, "HEAD.lock")]);
  const whole = existsSync(join(module, "index")) && (await git.run(module, ["rev-parse", "-q", "--verify", "HEAD"])).code === 0;
  if (whole) return;
  rmSync(module, { recursive: true, force: true });
  for (const name of existsSync(place) ? readdirSync(place) : []) rmSync(join(place, name), { recursive: true, force: true });
}

async function isFilled(git: Git, path: string, folder: string): Promise<boolean> {
  if (!existsSync(join(path, folder, ".git"))) return false;
  const [indexed, at] = await Promise.all([
    git.run(path, ["ls-files", "--stage", "-z", "--", folder]),
    git.run(join(path, folder), ["rev-parse", "-q", "--verify", "HEAD"]),
  ]);
  return at.code === 0 && indexed.stdout.startsWith(`160000 ${at.stdout.trim()} 0\t`);
}

/**
 * Commits what was changed in a worktree's submodules, and gives the commits to the checkout's own submodules as a branch: the
 * worktree's will be gone, and a branch must not name what nobody has.
 */
export async function saveSubmodules(
  tree: Tree,
  message: string,
  { identity }: Pick<Repo, "identity">,
  note: (text: string) => void = () => undefined,
): Promise<void> {
  const { git, path, branch, repo, record } = tree;
  for (const { name, folder } of await submodulesOf(git, path)) {
    const gitDir = moduleOf(record, name);
    if (gitDir === undefined || !existsSync(gitDir) || !existsSync(join(path, folder, ".git"))) continue;
    const inside = join(path, folder);
    const own = git.with({ env: { GIT_DIR: gitDir, GIT_WORK_TREE: inside } });
    if ((await own.must(inside, ["status", "--porcelain", "--untracked-files=all"])) !== "") {
      await own.must(inside, ["add", "-A"]);
      await own.must(inside, [...identity, "commit", "-q", "--no-verify", "--allow-empty-message", "-F", "-"], {
        input: message,
      });
    }
    const commit = await own.must(inside, ["rev-parse", "HEAD"]);
    if (commit === (await linkedIn(git, path, folder))) continue;
    await give(repo, { gitDir, folder, commit, branch });
    await own.must(inside, ["update-ref", `refs/remotes/origin/${branch}`, commit]);
    note(
      `${folder} is a submodule and was changed: the commit ${commit.slice(0, 12)} is on its branch ${branch}. Push that before you push what names it`,
    );
  }
}

/** Puts a commit of a worktree's submodule on a branch of the checkout's submodule. */
async function give(
  { git, root }: Repo,
  { gitDir, folder, commit, branch }: { gitDir: string; folder: string; commit: string; branch: string },
): Promise<void> {
  const theirs = join(root, folder);
  if (!existsSync(join(theirs, ".git")))
    throw new UserError(
      `${folder} is a submodule that is not checked out in ${root}, so a change to it has no place there. Say: git submodule update --init ${folder}`,
    );
  const writable = [await git.must(theirs, ["rev-parse", "--absolute-git-dir"])];
  const words = ["fetch", "-q", "--no-tags", "--no-write-fetch-head", gitDir, `+${commit}:refs/heads/${branch}`];
  await git.must(theirs, words, { fetchBy: ["file"], writable, settings: ["uploadpack.allowAnySHA1InWant=true"] });
}

/** The commit of another repository that the last commit names in a folder. */
async function linkedIn(git: Git, path: string, folder: string): Promise<string | undefined> {
  const listed = await git.run(path, ["ls-tree", "-z", "HEAD", "--", folder]);
  return /^160000 commit ([0-9a-f]+)\t/.exec(listed.stdout)?.[1];
}
