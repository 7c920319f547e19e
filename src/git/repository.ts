import { lstatSync, rmSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { UserError } from "../lib/errors.ts";
import type { ExecResult } from "../process/exec.ts";
import type { Git } from "./command.ts";
import { LOOK_FIRST } from "./scripts.ts";

/** A repository as whoever works in it finds it. */
export interface Repo {
  /** Git as it is let to work on this repository: what it writes is the repository's own folder. */
  git: Git;
  /** The top of the checkout. */
  root: string;
  /** Where the branches and objects of the repository lie. */
  commonDir: string;
  /** The project's folder below the top, or "". */
  prefix: string;
  /** Null when there is no commit yet. */
  head: string | null;
  /** The files of that commit. */
  tree: string | null;
  /** Null when the head is detached. */
  branch: string | null;
  dirty: boolean;
  /** What git ignores, relative to the top; folders end with a slash. */
  ignored: readonly string[];
  /** What git has to be told to commit in a repository that does not say by whom. */
  identity: readonly string[];
}

/** Git is told to use a program that is not there. */
export const LFS_REMEDY = "Install git-lfs, or undo its settings: git config --global --remove-section filter.lfs";

export const NAMELESS = ["-c", "user.name=Swarm", "-c", "user.email=swarm@localhost"];

/** What a folder is to git; undefined when it is in no repository. One that git refuses is not taken for none. */
export async function openRepo(git: Git, folder: string): Promise<Repo | undefined> {
  const status = ["status", "--porcelain=v2", "--branch", "--untracked-files=normal", "--ignored=traditional", "-z"];
  const [looked, user] = await Promise.all([
    git.run(folder, status, { script: LOOK_FIRST, maxOutput: 5_000_000, writable: lfsFolder(folder) }),
    git.user(),
  ]);
  if (looked.ending === "not-started")
    throw new UserError(`git cannot be started: ${looked.stderr}. Install it, and see that it is in the PATH.`);
  if (looked.code !== 0) {
    const marker = repositoryAbove(folder);
    if (marker === undefined && /not a git repository/.test(looked.stderr)) return undefined;
    throw new UserError(whyRefused(looked, marker === undefined ? folder : dirname(marker)));
  }
  const [places = "", tree = "", ...rest] = looked.stdout.split("\0");
  const ofStatus = rest.indexOf("") + 1;
  const [root = "", common = "", prefix = ""] = places.split("\n");
  // Without these git would work wherever this process happens to stand.
  if (root === "" || common === "") throw new UserError(`git said nothing of ${folder}, so nothing was begun there. Try again.`);
  const commonDir = resolve(folder, common);
  if (git.isOwn(commonDir))
    throw new UserError(`${root} is no project: its repository lies in ${commonDir}, where IO keeps its own files.`);
  return {
    git: git.with({ writable: [commonDir] }),
    root,
    commonDir,
    ...statusOf(rest.slice(ofStatus)),
    tree: tree.trim() || null,
    prefix: prefix.replace(/\/$/, ""),
    identity: identityOf(rest.slice(0, ofStatus), user),
  };
}

/** Where Git LFS writes even if it is only asked whether a file has changed; none that a link leads out of the project. */
function lfsFolder(folder: string): string[] {
  const own = repositoryAbove(folder);
  const isReal = (path: string) => lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  return own !== undefined && isReal(own) && isReal(join(own, "lfs")) ? [join(own, "lfs")] : [];
}

function statusOf(entries: readonly string[]): Pick<Repo, "head" | "branch" | "dirty" | "ignored"> {
  const lines = entries.filter((line) => line !== "");
  const header = (name: string) => lines.find((line) => line.startsWith(`# ${name} `))?.slice(name.length + 3);
  const head = header("branch.oid");
  const branch = header("branch.head");
  return {
    head: head === undefined || head === "(initial)" ? null : head,
    branch: branch === undefined || branch === "(detached)" ? null : branch,
    dirty: lines.some((line) => !line.startsWith("#") && !line.startsWith("! ")),
    ignored: lines.filter((line) => line.startsWith("! ")).map((line) => line.slice(2)),
  };
}

/** The repository's own word goes before the user's; where neither says an address, nobody's name is used. */
function identityOf(named: readonly string[], user: { name?: string; email?: string }): readonly string[] {
  const has = (key: string) => named.some((entry) => entry.startsWith(`user.${key}\n`));
  if (!has("email") && user.email === undefined) return NAMELESS;
  // Git would guess a name from the machine, and on some there is none to guess.
  const given = Object.entries({ name: user.name ?? "Swarm", email: user.email });
  return given.flatMap(([key, value]) => (has(key) || value === undefined ? [] : ["-c", `user.${key}=${value}`]));
}

/** The `.git` that git would find from a folder upwards, on the same disk as git does. */
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
      : 'Mend it until "git status" works there, or say parallel: false in the implement phase to work in place.';
  return `git refuses ${root}, so nothing was begun there: ${said}\n${remedy}`;
}

/** The commit a run begins from. Without any commit it is a picture of the checkout, made beside it. */
export async function baseCommit(repo: Repo, indexFile: string, message: string): Promise<string> {
  if (repo.head !== null) return repo.head;
  const env = { GIT_INDEX_FILE: indexFile };
  rmSync(indexFile, { force: true });
  const writable = [dirname(indexFile)];
  await repo.git.must(repo.root, ["add", "-A"], { env, writable });
  const tree = await repo.git.must(repo.root, ["write-tree"], { env, writable });
  return repo.git.must(repo.root, [...NAMELESS, "commit-tree", tree], { input: message });
}
