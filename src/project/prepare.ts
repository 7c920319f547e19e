import { createHash, randomBytes } from "node:crypto";
import { mkdirSync, renameSync, utimesSync } from "node:fs";
import { basename, delimiter, dirname, isAbsolute, join } from "node:path";
import { z } from "zod";
import { bring, installedIn } from "../git/dependencies.ts";
import { type Besides, besidesIn, changedIn, restoreFiles, type Tree } from "../git/worktrees.ts";
import { writeFileAtomic } from "../lib/atomic.ts";
import { codeOf } from "../lib/errors.ts";
import { isExecutable } from "../lib/is-executable.ts";
import type { Log } from "../lib/log.ts";
import { openBelow } from "../lib/pinned/folder.ts";
import { entriesAt } from "../lib/pinned/list.ts";
import { smallTextAt } from "../lib/pinned/read.ts";
import { replaceFile } from "../lib/pinned/write.ts";
import { oneLine } from "../lib/quoted.ts";
import { realOf } from "../lib/real-path.ts";
import type { Redactor } from "../lib/redact.ts";
import { statsAt } from "../lib/stats-at.ts";
import { projectEnvironment } from "../process/environment.ts";
import { type ExecResult, exec, notStarted } from "../process/exec.ts";
import { removeTree } from "../process/remove-tree.ts";
import type { SandboxProfile, Wrap } from "../process/sandbox.ts";
import { type Install, inputsOf, isLoose, shellCommandOf } from "./installs.ts";
import { inAskedVersion, refusalOf, withInstalledPnpm } from "./package-manager.ts";
import { lineThatTells, whyCouldNotRun } from "./reports/could-not-run.ts";

export interface PreparerDeps {
  wrap: Wrap;
  redactor: Redactor;
  /** Where installs are cached for the next run, by the hash of what they require; undefined for no cache. */
  kept: string | undefined;
  log: Log;
  deadlineMs?: number;
}

export interface Preparing {
  /** The worktree to install into. */
  tree: Tree;
  /** The folders of the checkout that were brought into the tree, and the top of the checkout. */
  checkout: { root: string; names: readonly string[] };
  profile: SandboxProfile;
  env: NodeJS.ProcessEnv;
  /** A folder on the tree's disk. */
  scratch: string;
  /** Whether the install may be cached for others: nobody but the tools has written in the tree. */
  keep: boolean;
  /** Takes over the copying into the cache; without it, the caller waits for that. */
  keepLater?: ((work: () => Promise<void>) => void) | undefined;
  /** Whether the present install is for another state of the files: it is removed, unless nothing can replace it. */
  replace?: boolean;
  signal: AbortSignal;
}

/** How one install ended. */
export interface Prepared {
  install: Install;
  /** "kept": an earlier run has installed the same. */
  state: "installed" | "kept" | "failed" | "missing program";
  /** What exists now, relative to the top. */
  made: string[];
  /** How the last command ended. */
  result: ExecResult;
  /** The command in the version that the project asks for, if that is not the installed one. */
  inAskedVersion?: string | undefined;
}

const DEADLINE_MS = 15 * 60_000;
const MAX_OUTPUT = 16_000;
/** How many installs are cached, the last used ones. */
const MOST_KEPT = 12;
/** A copy that is unfinished after this time was interrupted. */
const CUT_OFF_MS = 60 * 60_000;
/** Tools write the lock file and what they install in either order. */
const SAME_TIME_MS = 10_000;
/** The files that tools touch whenever they install in a folder. */
const TOUCHED = [
  ".package-lock.json",
  ".modules.yaml",
  ".yarn-integrity",
  ".yarn-state.yml",
  "pyvenv.cfg",
  "composer/installed.json",
];
const LARGEST = 20_000_000;
const NAMES = "names.json";

/** Nobody answers prompts, and nothing may be put into the user's repository. */
const UNATTENDED = {
  ...{ CI: "true", COREPACK_ENABLE_DOWNLOAD_PROMPT: "0" },
  ...{ HUSKY: "0", LEFTHOOK: "0", SKIP_INSTALL_SIMPLE_GIT_HOOKS: "1" },
};

/** Whether the checkout already has what a file requires, as far as can be told without asking the tool. */
export function isInstalled(install: Install, { root, names }: Preparing["checkout"], top: string): boolean {
  const { folder, file, makes } = install;
  const own = names.filter((name) => dirname(name) === folder && isMadeBy(install, join(root, name)));
  // Committed files are the project's own.
  if (own.length === 0) return makes[0] !== undefined && committedIn(top, install, names).includes(join(folder, makes[0]));
  if (isLoose(install) || own.some((name) => statsAt(join(root, name))?.isSymbolicLink())) return true;
  const lock = join(folder, file);
  const asked = statsAt(join(root, lock))?.mtimeMs;
  const isSame = smallTextAt(join(root, lock), LARGEST) === smallTextAt(join(top, lock), LARGEST);
  const last = Math.max(...own.map((name) => lastTouched(join(root, name))));
  return asked !== undefined && isSame && last + SAME_TIME_MS >= asked;
}

/** What an install would create and is in the tree without having been brought there. */
function committedIn(top: string, { folder, makes }: Install, brought: readonly string[]): string[] {
  return makes.map((name) => join(folder, name)).filter((name) => statsAt(join(top, name)) && !brought.includes(name));
}

function isMadeBy({ makes }: Install, path: string): boolean {
  return makes.includes(basename(path)) || (makes.includes(".venv") && statsAt(join(path, "pyvenv.cfg")) !== undefined);
}

function lastTouched(folder: string): number {
  const libraries = entriesAt(join(folder, "lib")).map(({ name }) => join("lib", name, "site-packages"));
  return Math.max(...["", ...TOUCHED, ...libraries].map((name) => statsAt(join(folder, name))?.mtimeMs ?? 0));
}

/** Installs what a project's files require into a tree, once for each state of those files. */
export function createPreparer({ wrap, redactor, kept, log, deadlineMs = DEADLINE_MS }: PreparerDeps) {
  /** Runs the commands of an install in the sandbox, with network access. */
  async function run(install: Install, { tree: { path: top }, profile, env, signal }: Preparing): Promise<ExecResult> {
    const cwd = join(top, install.folder);
    const theirs: NodeJS.ProcessEnv = { ...projectEnvironment(env, redactor), ...UNATTENDED, ...install.env };
    // With it, tools leave out what only developers need, such as test runners.
    delete theirs.NODE_ENV;
    const isDone = ({ ending, code }: ExecResult) => ending === "exited" && code === 0;
    let result = notStarted("");
    for (const command of install.commands) {
      const words = runnable(command, env, { top, cwd }) ?? [...command];
      const start = async (more?: NodeJS.ProcessEnv) => {
        const [program, ...args] = await wrap(words, cwd, { ...profile, network: true });
        return exec(program, args, { cwd, env: { ...theirs, ...more }, deadlineMs, signal, maxOutput: MAX_OUTPUT });
      };
      result = await start();
      // pnpm downloads the version that the project asks for; if it cannot, its own may do.
      const installed = command[0] === "pnpm" && !isDone(result) ? withInstalledPnpm({ top, cwd, env }) : undefined;
      if (installed && !signal.aborted) result = await start(installed.env);
      if (!isDone(result)) break;
    }
    return { ...result, output: redactor.clean(result.output) };
  }

  /** Caches a copy for the next run; if that fails, there is none. */
  async function keep(folder: string, names: readonly string[], { tree: { path: top }, signal }: Preparing): Promise<void> {
    mkdirSync(dirname(folder), { recursive: true, mode: 0o700 });
    try {
      mkdirSync(folder, { mode: 0o700 });
    } catch (error) {
      if (codeOf(error) !== "EEXIST") throw error;
      // Another run is already caching the same.
      return;
    }
    const tree = join(folder, "tree");
    try {
      for (const name of names) mkdirSync(join(tree, dirname(name)), { recursive: true, mode: 0o700 });
      await bring({ from: top, to: tree, names, scratch: folder, share: false, signal });
      writeFileAtomic(join(folder, NAMES), JSON.stringify(names));
    } catch (error) {
      await removeTree(join(realOf(dirname(folder)), basename(folder)));
      signal.throwIfAborted();
      log.warn("what was installed for a run could not be kept for the next one", { error });
    }
    await dropOldest(realOf(dirname(folder)));
  }

  /** Installs one thing; `seen` gets what else the tool left in the tree. */
  async function prepareOne(install: Install, at: Preparing, seen: (left: Besides) => void): Promise<Prepared> {
    const top = at.tree.path;
    const { root: from, names: before } = at.checkout;
    const folder = kept === undefined ? undefined : join(kept, hashOf(inputsOf(top, install)));
    const names = folder === undefined ? undefined : namesIn(folder);
    if (folder !== undefined && names !== undefined) {
      await bringKept(folder, names, at);
      return { install, state: "kept", made: names, result: { ...notStarted(""), code: 0, ending: "exited" } };
    }
    const [program] = install.commands[0]!;
    const place = { top, cwd: join(top, install.folder), env: at.env };
    if (!runnable(install.commands[0]!, at.env, place))
      return { install, state: "missing program", made: [], result: notStarted(`${program}: not found`) };
    const committed = committedIn(top, install, before);
    const replaced = at.replace
      ? moveAside(top, madeIn(install, top, committed, await besidesIn(at.tree)), at.scratch)
      : undefined;
    const result = await run(install, at);
    at.signal.throwIfAborted();
    const besides = await besidesIn(at.tree);
    const made = madeIn(install, top, committed, besides);
    const isMade = (name: string) => made.some((each) => name.replace(/\/$/, "") === each);
    seen({ ...besides, untracked: besides.untracked.filter((name) => !isMade(name)) });
    if (result.ending === "exited" && result.code === 0) {
      await replaced?.drop();
      if (folder !== undefined && at.keep) {
        const work = () => keep(folder, made, at);
        if (at.keepLater) at.keepLater(work);
        else await work();
      }
      return { install, state: "installed", made, result };
    }
    for (const name of made) await removeTree(join(realOf(top), name));
    await replaced?.moveBack();
    await bring({ from, to: top, names: before, scratch: at.scratch, share: false, signal: at.signal });
    const asked = inAskedVersion(install.commands[0]!, place);
    const typed = asked && install.folder !== "." ? `cd ${install.folder} && ${asked}` : asked;
    return { install, state: "failed", made: [], result, inAskedVersion: typed };
  }

  return {
    /** In sequence; one that fails does not stop the others. Their changes to other files are undone. */
    async prepare(installs: readonly Install[], at: Preparing): Promise<Prepared[]> {
      const isFresh = at.keep && !at.replace;
      const before = isFresh ? undefined : await changedIn(at.tree);
      const done: Prepared[] = [];
      let last: Besides | undefined;
      const seen = (left: Besides) => {
        last = left;
      };
      for (const install of installs) done.push(await prepareOne(install, at, seen));
      if (before) await undoSince(before, at.tree);
      else if (last) await undoAll(last, at.tree);
      return done;
    },
  };
}

/** What an install created in a tree, each part hidden from git; committed files are not part of it. */
function madeIn(install: Install, top: string, committed: readonly string[], besides: Besides): string[] {
  const ignored = besides.ignored.map((name) => name.replace(/\/$/, ""));
  const isBelow = (name: string) => install.folder === "." || name.startsWith(`${install.folder}/`);
  // One command installs for all packages of a workspace.
  const found = installedIn({ root: top, ignored }).filter((name) => isBelow(name) && isMadeBy(install, join(top, name)));
  const own = committedIn(top, install, committed);
  const isIgnored = (name: string) => ignored.some((each) => name === each || name.startsWith(`${each}/`));
  for (const name of own.filter((each) => !isIgnored(each))) {
    const folder = openBelow(top, name);
    if (folder) replaceFile(folder, ".gitignore", "*\n", { durable: false });
    folder?.close();
  }
  return [...new Set([...own, ...found])];
}

async function bringKept(
  folder: string,
  names: readonly string[],
  { tree: { path: top }, scratch, signal }: Preparing,
): Promise<void> {
  for (const name of names) await removeTree(join(realOf(top), name));
  await bring({ from: join(folder, "tree"), to: top, names, scratch, share: false, signal });
  utimesSync(join(folder, NAMES), new Date(), new Date());
}

/** Moves what is installed in a tree to a folder on the same disk. */
function moveAside(top: string, names: readonly string[], scratch: string) {
  mkdirSync(scratch, { recursive: true, mode: 0o700 });
  const aside = join(realOf(scratch), `replaced-${randomBytes(4).toString("hex")}`);
  mkdirSync(aside, { mode: 0o700 });
  const move = (name: string, at: number, isBack: boolean) => {
    const folder = openBelow(top, dirname(name));
    if (!folder) return;
    const [from, to] = [folder.entry(basename(name)), join(aside, String(at))];
    if (isBack) renameSync(to, from);
    else renameSync(from, to);
    folder.close();
  };
  for (const [at, name] of names.entries()) move(name, at, false);
  return {
    drop: () => removeTree(aside),
    async moveBack(): Promise<void> {
      for (const [at, name] of names.entries()) move(name, at, true);
      await removeTree(aside);
    },
  };
}

/** Restores a tree that nobody else works in to its last commit. */
async function undoAll({ files, untracked }: Besides, tree: Tree): Promise<void> {
  if (files.length > 0) await restoreFiles(tree, files);
  if (untracked.length > 0) await tree.git.must(tree.path, ["clean", "-q", "-fd"]);
}

/** Restores the files of a tree: those changed since go back to the last commit, new ones are deleted. */
async function undoSince(before: Pick<Awaited<ReturnType<typeof changedIn>>, "files" | "untracked">, tree: Tree): Promise<void> {
  const now = await changedIn(tree);
  const files = now.files.filter((file) => !before.files.includes(file));
  if (files.length > 0) await restoreFiles(tree, files);
  const known = new Set(before.untracked);
  const left = now.untracked.filter((file) => !known.has(file));
  if (left.length > 0 && known.size === 0) await tree.git.must(tree.path, ["clean", "-q", "-fd"]);
  else for (const file of left) await removeTree(join(realOf(tree.path), file));
}

/** Whether it is installed now. */
export const isPrepared = ({ state }: Prepared): boolean => state === "installed" || state === "kept";

/** What could not be installed and why, with the command for a person; `rest` says what that means here. */
export const missingInstallMessage = (prepared: Prepared, rest: string): string =>
  oneLine(
    `${whyNotPrepared(prepared)}. ${rest} Install it in the project: ${prepared.inAskedVersion ?? shellCommandOf(prepared.install)}`,
    2_000,
  );

/** Why an install failed, in a few words. */
function whyNotPrepared({ state, install, result }: Prepared): string {
  const [program] = install.commands[0]!;
  if (state === "missing program") return `${install.file} asks for ${program}, which is not installed here`;
  const { ending, code: exitCode, output } = result;
  const reason = whyCouldNotRun({ ending, exitCode, tail: output, reachedTests: false });
  const complaint = () =>
    output
      .trim()
      .split("\n")
      .findLast((line) => /error|fail|not|unable|cannot/i.test(line));
  const said = reason ? lineThatTells(reason, output) : complaint()?.trim().slice(0, 200);
  const commands = install.commands.map((command) => command.join(" ")).join(" && ");
  return `"${commands}" failed (${reason ?? `exit code ${exitCode}`}${said ? `: ${said}` : ""})`;
}

/**
 * The command as it can be started here; Corepack starts package managers that it provides. Undefined if the program is missing.
 */
function runnable(
  [program, ...args]: readonly [string, ...string[]],
  env: NodeJS.ProcessEnv,
  at: { top: string; cwd: string },
): [string, ...string[]] | undefined {
  if (program.includes("/")) return isExecutable(join(at.cwd, program)) ? [program, ...args] : undefined;
  const withCorepack = refusalOf(program, { ...at, env }) !== undefined && isOnPath("corepack", env);
  if (isOnPath(program, env) && !withCorepack) return [program, ...args];
  return ["pnpm", "yarn"].includes(program) && isOnPath("corepack", env) ? ["corepack", program, ...args] : undefined;
}

/** Whether a shell would find a program. */
export function isOnPath(program: string, { PATH = "" }: NodeJS.ProcessEnv): boolean {
  return PATH.split(delimiter).some((folder) => isAbsolute(folder) && isExecutable(join(folder, program)));
}

/** The names cached in a folder; undefined if the copy is incomplete. */
function namesIn(folder: string): string[] | undefined {
  const text = smallTextAt(join(folder, NAMES), 1_000_000);
  const read = text === undefined ? undefined : z.array(z.string()).safeParse(JSON.parse(text));
  return read?.success ? read.data : undefined;
}

/** Removes the least recently used installs, and interrupted copies. */
async function dropOldest(kept: string): Promise<void> {
  const all = entriesAt(kept)
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => ({
      name,
      used: statsAt(join(kept, name, NAMES))?.mtimeMs,
      made: statsAt(join(kept, name))?.mtimeMs ?? 0,
    }));
  const cut = all.filter(({ used, made }) => used === undefined && Date.now() - made > CUT_OFF_MS);
  const old = all.filter(({ used }) => used !== undefined).sort((a, b) => b.used! - a.used!);
  for (const { name } of [...cut, ...old.slice(MOST_KEPT)]) await removeTree(join(kept, name));
}

const hashOf = (asked: readonly string[]) => createHash("sha256").update(JSON.stringify(asked)).digest("hex").slice(0, 32);
export type Preparer = ReturnType<typeof createPreparer>;
