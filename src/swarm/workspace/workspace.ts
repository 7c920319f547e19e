import { existsSync, mkdirSync, rmdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { asideRef, setAside } from "../../git/aside.ts";
import type { Git } from "../../git/command.ts";
import { bring, installedIn } from "../../git/dependencies.ts";
import { diffOf, statOf } from "../../git/diff.ts";
import { deleteRefs, refsBelow } from "../../git/refs.ts";
import { movedIn } from "../../git/relocate.ts";
import { baseCommit, openRepo, type Repo } from "../../git/repository.ts";
import { openShadow } from "../../git/shadow.ts";
import {
  addWorktree,
  changedIn,
  commitAll,
  commitChanged,
  current,
  placeBelow,
  removeWorktree,
  restoreFiles,
  type Saved,
  type Tree,
  treeOf,
} from "../../git/worktrees.ts";
import { entriesAt } from "../../lib/pinned/list.ts";
import { realOf } from "../../lib/real-path.ts";
import { removeTree } from "../../process/remove-tree.ts";
import { lockHolder } from "../../store/lock.ts";
import { RunStopped } from "../steps/journal.ts";

/** A folder that agents work in, and whose states can be saved and compared. */
export interface Workspace {
  /** The agents' working directory. */
  cwd: string;
  /** Saves the present state as a tree, and as a commit if it is on a branch. */
  save(message: string): Promise<{ tree: string; commit: string | null }>;
  diff(from: string, to: string): Promise<string>;
  /** The saved files that have changed since, and whether there are no new files either; missing in place. */
  changed?(): Promise<{ files: string[]; clean: boolean }>;
  /** Restores files to the saved state; missing in place. */
  restore?(files: readonly string[]): Promise<void>;
  /** Saves the changes of those files, and no new files. */
  saveChanged?(message: string): Promise<{ tree: string; commit: string | null }>;
  /** Moves what commands left in the tree to a ref of its own; missing in place. */
  tidy?(label: string): Promise<string | undefined>;
}

/** A workspace that is a worktree of the project's repository. */
export interface Worktree extends Workspace {
  tree: Tree;
  /** The files that differ between two states, and by how much. */
  stat(from: string, to: string): Promise<string>;
}

/** Another repository that the same run changes. */
export interface Companion {
  /** The name of its worktree, its steps and its checks. */
  name: string;
  projectPath: string;
  workplace: BranchWorkplace;
}

export interface BranchWorkplace {
  kind: "branch";
  /** The name of its own tree among the run's worktrees. */
  name: string;
  /** The other repositories that are changed with this one. */
  companions: readonly Companion[];
  /** Combines a tree of its own with the companions' present trees; without companions it returns the tree itself. */
  stateWith(tree: string): Promise<string>;
  /** Its own tree in such a state. */
  ownTree(state: string): Promise<string>;
  repo: Repo;
  branch: string;
  base: string;
  /** The tree of that commit. */
  baseTree: string;
  /** The content of that commit, as lines of `git ls-tree`. */
  listed: Promise<readonly string[]>;
  /** The run's own folder. */
  folder: string;
  workspace: Worktree;
  /** The names of what the checkout has installed, once the run's own tree has it. */
  installed: Promise<readonly string[]>;
  /** The same names, known at once. */
  names: readonly string[];
  /** What else was installed in the run's own tree. */
  made: Set<string>;
  /** The running copies of it into other trees. */
  copying: Set<Promise<void>>;
  /** Trees of streams created in advance, by stream number. */
  preparedStreams: Map<number, { from: string; made: Promise<OpenedStream> }>;
  /** A cache of comparisons, shared by all trees: the same states differ in the same way. */
  compared: Compared;
  signal: AbortSignal;
}

/** Where a run works: on a branch of its own beside the checkout, or in place. */
export type Workplace = BranchWorkplace | { kind: "in place"; workspace: Workspace };

/** What was just found out about a project. */
export interface InspectedProject {
  /** Undefined outside git. */
  repo: Repo | undefined;
  /** The branch of the run. */
  branch: string;
}

export interface WorkplaceDeps {
  git: Git;
  projectPath: string;
  runId: string;
  /** The run's own folder. */
  folder: string;
  parallel: boolean;
  /** Files that the run itself writes into the checkout, which are not part of the work. */
  leftOut: readonly string[];
  inspected?: InspectedProject | undefined;
  /** The name of its tree among the run's worktrees. */
  name?: string;
  /** The commit to begin from, if not the checkout's. */
  base?: string | undefined;
  /** The branch to work on, if already decided. */
  branch?: string | undefined;
  signal: AbortSignal;
  /** Called with the agents' working directory as soon as it is known, before there are files in it. */
  onPlace?: (cwd: string) => void;
}

/** Opens the place a run works in. After a crash, `known` opens the same one. */
export async function openWorkplace(
  { git, projectPath, runId, folder, parallel, leftOut, inspected, name = "run", signal, onPlace, ...wanted }: WorkplaceDeps,
  known?: { base: string },
): Promise<Workplace> {
  const [found, branch] = await Promise.all([
    parallel ? (inspected ? inspected.repo : openRepo(git, projectPath)) : undefined,
    wanted.branch ?? inspected?.branch ?? branchOf(git, projectPath, runId),
  ]);
  if (!found) {
    onPlace?.(projectPath);
    const shadow = await openShadow(git, join(folder, "shadow.git"), projectPath, leftOut);
    return {
      kind: "in place",
      workspace: {
        cwd: projectPath,
        save: async () => ({ tree: await shadow.save(), commit: null }),
        diff: shadow.diff,
      },
    };
  }
  const repo = { ...found, git: found.git.with({ writable: [folder] }) };
  const base =
    known?.base ??
    wanted.base ??
    (await baseCommit(
      repo,
      join(folder, `${name === "run" ? "" : `${name}-`}base-index`),
      "The project as it was when the run began\n",
    ));
  const path = join(folder, "worktrees", name);
  const cwd = futureCwd(repo, path);
  if (cwd !== undefined) onPlace?.(cwd);
  // Starting a program blocks this thread, so let the receiver of the place begin its work first.
  await setImmediate();
  let baseTree: string;
  // Git scans the checkout while it fills the worktree.
  const status = repo.status();
  status.catch(() => undefined);
  const listed = listTree(repo, base);
  listed.catch(() => undefined);
  try {
    await addWorktree(repo, { path, branch, base, kept: known !== undefined, isLeft: isAbandoned });
    baseTree = (base === repo.head ? repo.tree : null) ?? (await repo.git.must(repo.root, ["rev-parse", `${base}^{tree}`]));
  } catch (error) {
    if (known === undefined) await removeFailedStart(repo, { path, branch, base, folder: name === "run" ? folder : undefined });
    throw error;
  }
  const names = installedIn({ root: repo.root, ignored: (await status).ignored });
  // Slow, and not needed before something is run.
  const installed = bring({ from: repo.root, to: path, names, scratch: folder, share: false, signal }).then(() => names);
  installed.catch(() => undefined);
  const compared: Compared = new Map();
  const workspace = worktree(repo, path, branch, { compared });
  const prepared = { listed, installed, names, made: new Set<string>(), copying: new Set<Promise<void>>() };
  const alone = { companions: [], stateWith: async (tree: string) => tree, ownTree: async (tree: string) => tree };
  const at = { name, ...alone, repo, branch, base, baseTree, folder };
  return { kind: "branch", ...at, workspace, ...prepared, preparedStreams: new Map(), compared, signal };
}

/** The content of a commit, as lines of `git ls-tree`. */
export async function listTree({ git, root }: Repo, base: string): Promise<string[]> {
  const listed = await git.must(root, ["ls-tree", "-r", "-z", "--full-tree", base], { maxOutput: 50_000_000 });
  return listed.split("\0").filter((line) => line !== "");
}

/** Removes what was made for a run that never began. */
async function removeFailedStart(
  repo: Repo,
  { path, branch, base, folder }: { path: string; branch: string; base: string; folder: string | undefined },
): Promise<void> {
  await removeWorktree(repo, path, branch, { evenWithWork: true });
  await deleteRefs(repo.git, repo.root, [`refs/heads/${branch} ${base}`]);
  if (folder !== undefined) await removeTree(join(realOf(dirname(folder)), basename(folder)));
}

/** The run's branch. Git cannot have `swarm/<run>` beside a branch `swarm`, neither here nor where the result is pushed. */
export async function branchOf(git: Git, projectPath: string, runId: string): Promise<string> {
  const begun = `refs/heads/swarm/${runId}`;
  const taken = [`refs/heads/swarm-${runId}`, "refs/heads/swarm", "refs/remotes/origin/swarm"];
  const there = new Set(await refsBelow(git, projectPath, begun, ...taken));
  return there.has(begun) || !taken.some((ref) => there.has(ref)) ? `swarm/${runId}` : `swarm-${runId}`;
}

/** Whether no daemon serves the home that a run's worktree is in, or was in before that home was restored elsewhere. */
export function isAbandoned(worktree: string): boolean {
  return lockHolder(join(worktree, "..", "..", "..", "..", "daemon.lock")) === undefined;
}

/** The tree of a stream, and what it begins from. */
export interface OpenedStream {
  branch: string;
  path: string;
  base: string;
  tree: string;
}

/** Creates the tree of a stream in advance. */
export function prepareStream(workplace: BranchWorkplace, number: number, from: Saved): void {
  const made = makeStream(workplace, number, from);
  made.catch(() => undefined);
  workplace.preparedStreams.set(number, { from: from.commit, made });
}

/** Creates a worktree and a branch for one stream, from a commit of the run's branch, unless that is done already. */
export async function openStream(workplace: BranchWorkplace, number: number, from: Saved): Promise<OpenedStream> {
  const prepared = workplace.preparedStreams.get(number);
  if (prepared?.from !== from.commit) return makeStream(workplace, number, from);
  return prepared.made.catch(() => makeStream(workplace, number, from));
}

async function makeStream(workplace: BranchWorkplace, number: number, from: Saved): Promise<OpenedStream> {
  const branch = streamBranch(workplace.branch, number);
  const path = pathOfStream(workplace, number);
  const how = await addWorktree(workplace.repo, { path, branch, base: from.commit });
  await shareInstalled(workplace, path);
  const at = how === "made" ? from : await current(treeOf(workplace.repo, path, branch));
  return { branch, path, base: at.commit, tree: how === "made" ? at.tree : await workplace.stateWith(at.tree) };
}

/** Copies what the run's own tree has installed into another tree of the run. */
export async function shareInstalled(workplace: BranchWorkplace, path: string): Promise<void> {
  const { folder, workspace, made, copying, signal } = workplace;
  try {
    const names = [...new Set([...(await workplace.installed), ...made])];
    const copied = bring({ from: workspace.tree.path, to: path, names, scratch: folder, share: true, signal });
    copying.add(copied);
    await copied.finally(() => copying.delete(copied));
  } catch (error) {
    if (signal.aborted) throw new RunStopped("the run was stopped");
    throw error;
  }
}

/** The environment of a command in one of the run's trees: paths into the checkout become paths into that tree. */
export function environmentIn(workplace: Workplace, cwd: string, env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  if (workplace.kind === "in place") return env;
  const { root, prefix } = workplace.repo;
  const top = prefix === "" ? cwd : cwd.slice(0, -prefix.length - 1);
  return Object.fromEntries(Object.entries(env).map(([name, value]) => [name, value && movedIn(value, root, top)]));
}

/** Where a run keeps what it installed for its own trees. */
export const installedOfRun = ({ folder }: { folder: string }): string => join(folder, "installed");

/** Where a stream works. */
export function pathOfStream({ folder }: { folder: string }, number: number): string {
  return join(folder, "worktrees", `stream-${number}`);
}

/** The future working directory of a stream's agents; undefined if it cannot be created in advance. */
export function futureCwdOfStream(workplace: Workplace, number: number): string | undefined {
  return workplace.kind === "in place" ? workplace.workspace.cwd : futureCwd(workplace.repo, pathOfStream(workplace, number));
}

/** Creates the working directory in advance. Git accepts an empty folder for a worktree, but not one with a folder in it. */
function futureCwd(repo: Repo, path: string): string | undefined {
  if (repo.prefix !== "") return existsSync(join(path, ".git")) ? join(path, repo.prefix) : undefined;
  mkdirSync(path, { recursive: true, mode: 0o700 });
  return path;
}

/** Removes the folders that were created in advance and never used. */
export function removeEmpty(folder: string): void {
  for (const entry of entriesAt(realOf(folder))) {
    const path = join(realOf(folder), entry.name);
    if (entry.isDirectory() && entriesAt(path).length === 0) rmdirSync(path);
  }
}

export function streamBranch(runBranch: string, number: number): string {
  return `${runBranch}-stream-${number}`;
}

export interface WorktreeOptions {
  compared: Compared;
  note?: (text: string) => void;
}

export function worktree(repo: Repo, path: string, branch: string, { compared, note }: WorktreeOptions): Worktree {
  const tree = treeOf(repo, path, branch);
  const cwd = placeBelow(path, repo.prefix);
  const diff = cached(compared, "diff", (from, to) => diffOf(tree.git, path, from, to));
  const stat = cached(compared, "stat", (from, to) => statOf(tree.git, path, from, to));
  return {
    tree,
    cwd,
    save: (message) => commitAll(repo, tree, message, note),
    diff,
    stat,
    changed: () => changedIn(tree),
    restore: (files) => restoreFiles(tree, files),
    saveChanged: (message) => commitChanged(repo, tree, message),
    tidy: (label) => setAside(tree, asideRef(branch, label)),
  };
}

type Compared = Map<string, Promise<string>>;
type Compare = (from: string, to: string) => Promise<string>;

/** How many comparisons are cached. */
const MOST_COMPARED = 16;

/** Caches comparisons, except failed ones. */
function cached(compared: Compared, kind: string, compare: Compare): Compare {
  return (from, to) => {
    const key = `${kind} ${from} ${to}`;
    const text = compared.get(key) ?? compare(from, to);
    compared.delete(key);
    compared.set(key, text);
    text.catch(() => compared.delete(key));
    for (const oldest of [...compared.keys()].slice(0, -MOST_COMPARED)) compared.delete(oldest);
    return text;
  };
}
