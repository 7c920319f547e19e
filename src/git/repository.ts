import { accessSync, constants, existsSync, lstatSync, rmSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { codeOf, UserError, usageError } from "../lib/errors.ts";
import { quotedForShell } from "../lib/invocation.ts";
import type { ExecResult } from "../process/exec.ts";
import type { Git } from "./command.ts";
import { LOOK_FIRST } from "./scripts.ts";

/** A repository, as seen from a folder in it. */
export interface Repo {
  /** Git for this repository: it may write only the repository's own folder. */
  git: Git;
  /** The root of the checkout. */
  root: string;
  /** The folder of the repository's branches and objects. */
  commonDir: string;
  /** The project's folder below the root, or "". */
  prefix: string;
  /** Null if there is no commit yet. */
  head: string | null;
  /** The files of that commit. */
  tree: string | null;
  /** Null if the head is detached. */
  branch: string | null;
  /** How the checkout differs from the last commit. Walks all of its files once, at the first call. */
  status(): Promise<CheckoutStatus>;
  /** Options for commits in a repository without a committer. */
  identity: readonly string[];
}

/** What a checkout contains besides its last commit. */
export interface CheckoutStatus {
  dirty: boolean;
  /** Ignored entries, relative to the root; folders end with a slash. */
  ignored: readonly string[];
}

/** What to do if git is configured to use git-lfs, which is missing. */
export const LFS_REMEDY = "Install git-lfs, or undo its settings: git config --global --remove-section filter.lfs";

export const NAMELESS = ["-c", "user.name=Swarm", "-c", "user.email=swarm@localhost"];

/** The repository of a folder; undefined if there is none. Throws if git refuses to use it. */
export async function openRepo(git: Git, folder: string): Promise<Repo | undefined> {
  const committers = ["config", "-z", "--get-regexp", "^user\\.(name|email)$"];
  const [looked, user] = await Promise.all([git.run(folder, committers, { script: LOOK_FIRST }), git.user()]);
  if (looked.ending === "not-started")
    throw new UserError(`git cannot be started: ${looked.stderr}. Install it, and see that it is in the PATH.`);
  if (looked.code !== 0) {
    const marker = repositoryAbove(folder);
    if (marker === undefined && /not a git repository/.test(looked.stderr)) return undefined;
    throw new UserError(whyRefused(looked, marker === undefined ? folder : dirname(marker)));
  }
  const [places = "", at = "", branch = "", ...named] = looked.stdout.split("\0");
  const [root = "", common = "", prefix = ""] = places.split("\n");
  // Without these, git would use this process's working directory.
  if (root === "" || common === "") throw new UserError(`git said nothing of ${folder}, so nothing was begun there. Try again.`);
  const commonDir = resolve(folder, common);
  if (git.isOwn(commonDir))
    throw new UserError(`${root} is no project: its repository lies in ${commonDir}, where IO keeps its own files.`);
  const [head, tree] = at.split("\n").filter((line) => /^[0-9a-f]{40,64}$/.test(line));
  let status: Promise<CheckoutStatus> | undefined;
  return {
    git: git.with({ writable: [commonDir] }),
    root,
    commonDir,
    head: head ?? null,
    tree: tree ?? null,
    branch: branch.startsWith(HEADS) ? branch.trim().slice(HEADS.length) : null,
    prefix: prefix.replace(/\/$/, ""),
    identity: identityOf(named, user),
    status() {
      status ??= statusOf(git, folder, root);
      return status;
    },
  };
}

const HEADS = "refs/heads/";

/** The folder that Git LFS writes even for a status; none if a link leads it out of the project. */
function lfsFolder(folder: string): string[] {
  const own = repositoryAbove(folder);
  const isReal = (path: string) => lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  return own !== undefined && isReal(own) && isReal(join(own, "lfs")) ? [join(own, "lfs")] : [];
}

async function statusOf(git: Git, folder: string, root: string): Promise<CheckoutStatus> {
  const status = ["status", "--porcelain", "--untracked-files=normal", "--ignored=traditional", "-z"];
  const looked = await git.run(folder, status, { maxOutput: 5_000_000, writable: lfsFolder(folder) });
  if (looked.code !== 0) throw new UserError(whyRefused(looked, root));
  const lines = looked.stdout.split("\0").filter((line) => line !== "");
  const isIgnored = (line: string) => line.startsWith("!! ");
  return { dirty: !lines.every(isIgnored), ignored: lines.filter(isIgnored).map((line) => line.slice(3)) };
}

/** The repository's committer, else the user's, else a neutral name. */
function identityOf(named: readonly string[], user: { name?: string; email?: string }): readonly string[] {
  const has = (key: string) => named.some((entry) => entry.startsWith(`user.${key}\n`));
  if (!has("email") && user.email === undefined) return NAMELESS;
  // Git would guess a name from the machine, which not every machine has.
  const given = Object.entries({ name: user.name ?? "Swarm", email: user.email });
  return given.flatMap(([key, value]) => (has(key) || value === undefined ? [] : ["-c", `user.${key}=${value}`]));
}

/** The `.git` that git would find from a folder upwards, on the same file system, as git does. */
export function repositoryAbove(folder: string): string | undefined {
  const dev = statSync(folder, { throwIfNoEntry: false })?.dev;
  for (let at = folder; dev !== undefined; at = dirname(at)) {
    if (lstatSync(join(at, ".git"), { throwIfNoEntry: false })) return join(at, ".git");
    if (dirname(at) === at || statSync(dirname(at)).dev !== dev) return undefined;
  }
  return undefined;
}

function whyRefused({ ending, stderr }: ExecResult, root: string): string {
  const said = ending === "exited" ? stderr.trim().slice(0, 600) : ending;
  const remedy = /dubious ownership/.test(said)
    ? `If you trust it: git config --global --add safe.directory ${root}`
    : /git-lfs[^\n]{0,200}not found/.test(said)
      ? LFS_REMEDY
      : 'Mend it until "git status" works there, or work in place: parallel: false in the implement phase of a run, --isolation none for a squad.';
  return `git refuses ${root}, so nothing was begun there: ${said}\n${remedy}`;
}

/** Refuses a repository in which no branch or worktree can be created. */
export function refuseReadOnly({ commonDir, root }: Pick<Repo, "commonDir" | "root">): void {
  const folders = ["", "objects", "refs", "refs/heads", "worktrees"].map((name) => join(commonDir, name));
  for (const folder of folders.filter((path) => existsSync(path))) {
    try {
      accessSync(folder, constants.W_OK);
    } catch (error) {
      throw usageError(
        `${folder} cannot be written (${codeOf(error)}), and the result would be a branch in it. Nothing was begun. Make it writable (chmod -R u+w ${quotedForShell(commonDir)}), or work in a copy: git clone ${quotedForShell(root)} <folder>`,
      );
    }
  }
}

/** The commit a run starts from. Without any commit, one is made of the checkout's files, beside the checkout. */
export async function baseCommit(repo: Repo, indexFile: string, message: string): Promise<string> {
  if (repo.head !== null) return repo.head;
  const env = { GIT_INDEX_FILE: indexFile };
  rmSync(indexFile, { force: true });
  const writable = [dirname(indexFile)];
  await repo.git.must(repo.root, ["add", "-A"], { env, writable });
  const tree = await repo.git.must(repo.root, ["write-tree"], { env, writable });
  return repo.git.must(repo.root, [...NAMELESS, "commit-tree", tree], { input: message });
}
