import { existsSync, lstatSync, mkdirSync, rmSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { messageOf, UserError } from "../lib/errors.ts";
import type { ExecResult } from "../process/exec.ts";
import { git, must } from "./command.ts";
import { diffOf } from "./diff.ts";
import { locksOf, releaseLocks } from "./locks.ts";
import { hasLinks, submodulesOf, unnest } from "./nested.ts";

/** A repository as a run finds it. */
export interface Repo {
  /** The top of the checkout. */
  root: string;
  /** The project's folder below the top, or "". */
  prefix: string;
  /** Null when there is no commit yet. */
  head: string | null;
  /** Null when the head is detached. */
  branch: string | null;
  dirty: boolean;
  /** Folders that git ignores, relative to the top. */
  ignored: readonly string[];
  /** What git has to be told to commit in a repository whose user has no name. */
  identity: readonly string[];
}

export interface Saved {
  tree: string;
  commit: string;
}

export { must };

const NAMELESS = ["-c", "user.name=Swarm", "-c", "user.email=swarm@localhost"];

/** A merge that was made: its commit, and the one that it brought in. */
export interface Merge {
  commit: string;
  of: string;
}

/** What a folder is to git; undefined when it is in no repository. One that git refuses is not taken for none. */
export async function openRepo(folder: string): Promise<Repo | undefined> {
  const [places, status, email] = await Promise.all([
    git(folder, ["rev-parse", "--show-toplevel", "--show-prefix"]),
    git(folder, ["status", "--porcelain=v2", "--branch", "--untracked-files=normal", "--ignored=traditional", "-z"], {
      maxOutput: 5_000_000,
    }),
    git(folder, ["config", "user.email"]),
  ]);
  if (places.ending === "not-started") throw new UserError("git cannot be started. Install it, and see that it is in the PATH.");
  const refused = [places, status].find(({ code }) => code !== 0);
  if (refused) {
    const marker = repositoryAbove(folder);
    if (marker === undefined && /not a git repository/.test(refused.stderr)) return undefined;
    throw new UserError(whyRefused(refused, marker === undefined ? folder : dirname(marker)));
  }
  const [root = folder, prefix = ""] = places.stdout.split("\n");
  const lines = status.stdout.split("\0").filter((line) => line !== "");
  const left = lines.filter((line) => line.startsWith("! ")).map((line) => line.slice(2));
  const header = (name: string) => lines.find((line) => line.startsWith(`# ${name} `))?.slice(name.length + 3);
  const head = header("branch.oid");
  const branch = header("branch.head");
  return {
    root,
    prefix: prefix.replace(/\/$/, ""),
    head: head === undefined || head === "(initial)" ? null : head,
    branch: branch === undefined || branch === "(detached)" ? null : branch,
    dirty: lines.some((line) => !line.startsWith("#") && !line.startsWith("! ")),
    ignored: left.filter((name) => name.endsWith("/")),
    identity: email.code === 0 ? [] : NAMELESS,
  };
}

/** The `.git` that git would find from a folder upwards, on the same disk as git does. */
function repositoryAbove(folder: string): string | undefined {
  const { dev } = statSync(folder);
  for (let at = folder; ; at = dirname(at)) {
    if (lstatSync(join(at, ".git"), { throwIfNoEntry: false })) return join(at, ".git");
    if (dirname(at) === at || statSync(dirname(at)).dev !== dev) return undefined;
  }
}

function whyRefused({ ending, stderr }: ExecResult, root: string): string {
  const said = ending === "exited" ? stderr.trim().slice(0, 600) : ending;
  const remedy = /dubious ownership/.test(said)
    ? `If you trust it: git config --global --add safe.directory ${root}`
    : 'Mend it until "git status" works there, or say parallel: false in the implement phase to work in place.';
  return `git refuses ${root}, so nothing was begun there: ${said}\n${remedy}`;
}

/** The commit a run begins from. Without any commit it is a picture of the checkout, made beside it. */
export async function baseCommit(repo: Repo, indexFile: string, message: string): Promise<string> {
  if (repo.head !== null) return repo.head;
  const env = { GIT_INDEX_FILE: indexFile };
  rmSync(indexFile, { force: true });
  await must(repo.root, ["add", "-A"], { env });
  const tree = await must(repo.root, ["write-tree"], { env });
  return must(repo.root, [...NAMELESS, "commit-tree", tree], { input: message });
}

/** Makes a worktree on a branch of its own. One that is `kept` may hold work and is left as it is. */
export async function addWorktree(
  repo: Repo,
  { path, branch, base, kept = false }: { path: string; branch: string; base: string; kept?: boolean },
): Promise<void> {
  if (existsSync(join(path, ".git"))) {
    if (kept) return releaseLocks(locksOf(path, branch));
    const on = await git(path, ["symbolic-ref", "-q", "--short", "HEAD"]);
    const whole = await git(path, ["rev-parse", "-q", "--verify", "HEAD"]);
    const filled = await git(path, ["diff", "--quiet", "HEAD"]);
    if (on.stdout.trim() === branch && whole.code === 0 && filled.code === 0) return prepareSubmodules(repo, path);
    // An earlier life was cut off while it made this: nobody has worked in it.
    await git(repo.root, ["worktree", "unlock", path]);
    rmSync(path, { recursive: true, force: true });
  }
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const fresh = await git(repo.root, ["worktree", "add", "-q", "--no-track", "-b", branch, path, base]);
  if (fresh.code === 0) return prepareSubmodules(repo, path);
  await must(repo.root, ["worktree", "prune"]);
  const known = await git(repo.root, ["rev-parse", "-q", "--verify", `refs/heads/${branch}`]);
  await must(repo.root, ["worktree", "add", "-q", ...(known.code === 0 ? [path, branch] : ["-b", branch, path, base])]);
  await prepareSubmodules(repo, path);
}

/** Fills a worktree's submodules from the checkout's own, where those are there; nothing is fetched. */
async function prepareSubmodules(repo: Repo, path: string): Promise<void> {
  for (const { name, folder } of await submodulesOf(path)) {
    if (!existsSync(join(repo.root, folder, ".git"))) continue;
    if (existsSync(join(path, folder, ".git"))) continue;
    const url = `submodule.${name}.url=${join(repo.root, folder)}`;
    await git(path, [
      "--literal-pathspecs",
      "-c",
      "protocol.file.allow=always",
      "-c",
      url,
      "-c",
      `submodule.${name}.active=true`,
      "submodule",
      "--quiet",
      "update",
      "--init",
      "--",
      folder,
    ]);
  }
}

/** Commits whatever is in a worktree; without a change it is the commit that is there. */
export async function commitAll(
  repo: Repo,
  path: string,
  branch: string,
  message: string,
  note?: (text: string) => void,
): Promise<Saved> {
  const [added, nested] = await Promise.all([git(path, ["-c", "advice.addEmbeddedRepo=true", "add", "-A"]), hasLinks(path)]);
  // Git says it when it meets a repository in the tree; one that an agent has added before is a link by now.
  if (added.code !== 0 || nested || /embedded git repository/.test(added.stderr)) {
    for (const { folder, keptAs } of await unnest(path)) {
      note?.(`${folder} was a repository of its own in the tree; its files are in the branch, its history is kept in ${keptAs}`);
    }
    await must(path, ["add", "-A"]);
  }
  const made = await git(path, [...repo.identity, "commit", "-q", "--no-verify", "--allow-empty-message", "-F", "-"], {
    input: message,
  });
  if (made.code !== 0 && !/nothing to commit|nothing added to commit|working tree clean/.test(made.output)) {
    throw new UserError(`git commit failed in ${path}: ${made.output.trim().slice(-600)}`);
  }
  return current(path, branch);
}

/** The commit and tree a worktree stands on; its branch has to be the one it was made with. */
export async function current(path: string, branch: string): Promise<Saved> {
  const [commit = "", tree = "", on = ""] = (
    await must(path, ["rev-parse", "HEAD", "HEAD^{tree}", "--symbolic-full-name", "HEAD"])
  ).split("\n");
  if (on !== `refs/heads/${branch}`) {
    throw new UserError(
      `${path} is no longer on its branch ${branch} but on ${on}: the agent switched it. Switch it back, then resume.`,
    );
  }
  return { commit, tree };
}

export async function isAncestor(repo: string, commit: string, of: string): Promise<boolean> {
  return (await git(repo, ["merge-base", "--is-ancestor", commit, of])).code === 0;
}

/** Merges a commit into a worktree. With conflicts nothing is left behind but their list. */
export async function mergeInto(
  repo: Repo,
  { path, branch, commit, message }: { path: string; branch: string; commit: string; message: string },
): Promise<{ saved: Saved; conflicts: string[] }> {
  const merge = () => git(path, [...repo.identity, "merge", "-q", "--no-ff", "--no-verify", "-m", message, commit]);
  let merged = await merge();
  if (merged.code !== 0 && /MERGE_HEAD exists|not concluded your merge|unmerged files/.test(merged.output)) {
    // An earlier life was cut off in the middle of this merge.
    await must(path, ["merge", "--abort"]);
    merged = await merge();
  }
  if (merged.code === 0) return { saved: await current(path, branch), conflicts: [] };
  const conflicts = await conflictsOf(path);
  if (await merging(path)) await must(path, ["merge", "--abort"]);
  if (conflicts.length === 0) throw new UserError(`git merge failed in ${path}: ${merged.output.trim().slice(-600)}`);
  return { saved: await current(path, branch), conflicts };
}

/**
 * Takes merges off the tip of a branch, in its own clean worktree, as many as are there; the commit it then stands on. One
 * that made no commit, because there was nothing to merge, is somebody else's and stays.
 */
export async function dropMerges(path: string, branch: string, merges: readonly Merge[]): Promise<string> {
  const at = (await current(path, branch)).commit;
  let tip = at;
  for (let ours = true; ours; ) {
    const [, first, second] = (await must(path, ["rev-list", "--parents", "-n", "1", tip])).split(" ");
    ours = first !== undefined && merges.some(({ commit, of }) => commit === tip && of === second);
    if (ours) tip = first!;
  }
  if (tip !== at) await must(path, ["reset", "-q", "--hard", tip]);
  return tip;
}

/** Begins a merge and leaves its conflicts in the files, for somebody to settle. */
export async function beginMerge(path: string, commit: string): Promise<string[]> {
  if (!(await isAncestor(path, commit, "HEAD")) && !(await merging(path))) {
    await git(path, [...NAMELESS, "merge", "-q", "--no-commit", "--no-ff", commit]);
  }
  return conflictsOf(path);
}

async function merging(path: string): Promise<boolean> {
  return (await git(path, ["rev-parse", "-q", "--verify", "MERGE_HEAD"])).code === 0;
}

async function conflictsOf(path: string): Promise<string[]> {
  const listed = await git(path, ["diff", "--name-only", "--diff-filter=U", "-z"]);
  return listed.stdout.split("\0").filter((name) => name !== "");
}

/** The files of a list that still hold conflict markers. */
export async function unsettled(path: string, files: readonly string[]): Promise<string[]> {
  const left = files.filter((file) => existsSync(join(path, file)));
  if (left.length === 0) return [];
  const marker = "^(<<<<<<<|>>>>>>>)( |$)";
  const found = await git(path, ["--literal-pathspecs", "grep", "--no-index", "-l", "-z", "-E", marker, "--", ...left]);
  if (found.code === 0) return found.stdout.split("\0").filter((name) => name !== "");
  if (found.code === 1 && found.stderr === "") return [];
  throw new UserError(`git grep failed in ${path}: ${found.output.trim().slice(-600)}`);
}

/** Puts what is uncommitted in a worktree under a ref of its own and makes the tree clean again; the ref, if there was anything. */
export async function setAside(path: string, ref: string): Promise<string | undefined> {
  const status = await must(path, ["status", "--porcelain", "--untracked-files=all"]);
  if (status === "") return undefined;
  const gitDir = await must(path, ["rev-parse", "--absolute-git-dir"]);
  await unnest(path);
  const env = { GIT_INDEX_FILE: join(gitDir, "swarm-aside-index") };
  await must(path, ["read-tree", "HEAD"], { env });
  await must(path, ["add", "-A"], { env });
  const tree = await must(path, ["write-tree"], { env });
  const commit = await must(path, [...NAMELESS, "commit-tree", tree, "-p", "HEAD"], { input: "left behind in the tree\n" });
  await must(path, ["update-ref", ref, commit]);
  await must(path, ["reset", "-q", "--hard", "HEAD"]);
  await must(path, ["clean", "-q", "-fd"]);
  return ref;
}

/** Takes a worktree away, unless it holds work that is committed nowhere. */
export async function removeWorktree(repo: Repo, path: string): Promise<"removed" | "kept"> {
  if (!existsSync(path)) return "removed";
  const status = await git(path, ["status", "--porcelain", "--untracked-files=all", "--ignore-submodules=none"]);
  if (status.code !== 0 || status.stdout.trim() !== "" || (await merging(path))) return "kept";
  const plain = await git(repo.root, ["worktree", "remove", path]);
  if (plain.code === 0) return "removed";
  // Git refuses to remove a worktree with submodules unless told twice; that they are clean was seen above.
  if (!/submodules/.test(plain.stderr)) return "kept";
  const loose = await git(path, [
    "submodule",
    "--quiet",
    "foreach",
    "--recursive",
    "git branch -r --contains HEAD | grep -q . || echo loose",
  ]);
  if (loose.code !== 0 || loose.stdout.includes("loose")) return "kept";
  return (await git(repo.root, ["worktree", "remove", "--force", path])).code === 0 ? "removed" : "kept";
}

/** Deletes a branch whose every commit another one has. */
export async function dropMerged(repo: Repo, branch: string, into: string): Promise<void> {
  const at = await git(repo.root, ["rev-parse", "-q", "--verify", `refs/heads/${branch}`]);
  if (at.code !== 0 || !(await isAncestor(repo.root, at.stdout.trim(), into))) return;
  await git(repo.root, ["update-ref", "-d", `refs/heads/${branch}`, at.stdout.trim()]);
}

/** Merges the run's branch into the user's own checkout; the reason when that cannot be. */
export async function applyBranch(repo: Repo, branch: string): Promise<string | undefined> {
  const now = await openRepo(join(repo.root, repo.prefix)).catch((error: unknown) => {
    if (error instanceof UserError) return messageOf(error);
    throw error;
  });
  if (typeof now === "string") return now;
  if (!now?.head) return "the checkout has no commit to merge into";
  if (await isAncestor(repo.root, branch, "HEAD")) return undefined;
  if (!now.branch) return "the checkout is on no branch (detached head)";
  const merged = await git(repo.root, [...repo.identity, "merge", "-q", "--no-edit", branch]);
  if (merged.code === 0) return undefined;
  if (await merging(repo.root)) await git(repo.root, ["merge", "--abort"]);
  return `git merge ${branch} failed: ${merged.output.trim().slice(-400)}`;
}

/** A record of a folder's states that leaves the folder and its own repository alone. */
export async function openShadow(gitDir: string, folder: string, leftOut: readonly string[]) {
  const env = { GIT_DIR: gitDir, GIT_WORK_TREE: folder };
  if (!existsSync(join(gitDir, "HEAD"))) {
    mkdirSync(dirname(gitDir), { recursive: true, mode: 0o700 });
    await must(dirname(gitDir), ["init", "-q", "--bare", gitDir]);
  }
  await releaseLocks([join(gitDir, "index.lock")]);
  const excludes = ["node_modules", ".venv", ...leftOut].map(
    (name) => `:(exclude,glob)${name.includes("/") ? name : `**/${name}`}`,
  );
  return {
    async save(): Promise<string> {
      await must(folder, ["add", "-A", "--ignore-errors", "--", ".", ...excludes], { env });
      return must(folder, ["write-tree"], { env });
    },
    diff: (from: string, to: string) => diffOf(folder, from, to, { env }),
  };
}
