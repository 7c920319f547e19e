import { lstatSync, realpathSync, type Stats, statSync } from "node:fs";
import { basename, dirname, join, relative, sep } from "node:path";
import { isRestoreFolder, RESTORE_ROOM } from "../home/data-folder.ts";
import type { Paths } from "../home/paths.ts";
import { dependencyOf } from "../lib/own-packages.ts";
import { named } from "../lib/quoted.ts";
import { locate, realOf } from "../lib/real-path.ts";
import { withoutEnd } from "../lib/trim.ts";
import { createFolderMembers, entries, idOf } from "./folder-members.ts";
import type { Touch } from "./tool.ts";

/** Where IO keeps its own files. */
export interface OwnPlaces {
  paths: Paths;
  packageRoot: string;
}

export interface GuardDeps extends OwnPlaces {
  /** Files that IO starts or loads, besides its own. */
  programs?: readonly string[];
  selfEdit: () => boolean;
}

export type Reached = { real: string } | { refusal: string };

/** Protects IO's own secrets and code from the model, whatever path leads to them. */
export interface PathGuard {
  /** What a guard in another thread is built from. */
  readonly own: OwnPlaces;
  /** The real path, or why somebody who works in `cwd` and in the worktrees `besides` may not access it. */
  reach(path: string, how: Touch["how"], cwd: string, besides?: readonly string[]): Reached;
  /** The same for writing the entry itself: a link at the end of the path is not followed. */
  reachEntry(path: string, cwd: string, besides?: readonly string[]): Reached;
  /** Why this path may not be accessed; undefined if it may. */
  refuse(path: string, how: Touch["how"], cwd: string, besides?: readonly string[]): string | undefined;
  /** The files and folders that no tool may read. */
  secrets(): string[];
  /** The files and folders that no tool may write at present. */
  readOnly(): string[];
  /** Whether an open file is one that no tool may read, whatever path led to it. */
  isSecretFile(stats: Stats): boolean;
  /** Whether a file on the data folder's disk, given by its inode number, is one that no tool may read. */
  isOwn(ino: bigint): boolean;
}

/** Every folder above a path is checked, several times; no real path is nested this deep. */
const MAX_PARTS = 100;
const CODE = ["bin", "dist", "src", "agents", "pipelines", "rehearsal", "node_modules", ".runtime", "package.json"];

export function createPathGuard({ paths, packageRoot, programs = [], selfEdit }: GuardDeps): PathGuard {
  const names = [
    ...[paths.token, paths.config, paths.worker, paths.cluster, paths.scratch, paths.undo, paths.runtime].map((path) =>
      basename(path),
    ),
    ...["service.env", "compiled", "open-page.html", RESTORE_ROOM],
  ];
  const database = basename(paths.database);
  const sessions = basename(paths.sessions);
  const isSecretName = (name: string) =>
    name === sessions ||
    [...names, database].some((own) => name === own || name.startsWith(`.${own}.`)) ||
    name.startsWith(`${database}-`) ||
    name.startsWith(`${database}.`);

  const isSessionFile = createFolderMembers(paths.sessions);
  const secrets = () =>
    [...new Set([...names, sessions, database, ...entries(paths.home).filter(isSecretName)])].map((name) =>
      join(paths.home, name),
    );
  const ownCode = [...CODE.map((name) => join(packageRoot, name)), ...dependencies(packageRoot)];
  const ownRooms = [paths.daemon, paths.skills, paths.scratch, paths.runtime];
  const readOnly = () => [...ownRooms, process.execPath, ...programs, ...(selfEdit() ? [] : ownCode)];

  const isSecret = (real: string): boolean => {
    const home = identity(paths.home);
    const store = identity(paths.sessions);
    const parent = identity(dirname(realOf(paths.home)));
    for (const folder of ancestors(real)) {
      const found = identity(folder);
      if (found === undefined) continue;
      if (found === store) return true;
      if (found === parent && isRestoreFolder(realOf(paths.home), relative(folder, real).split(sep)[0] ?? "")) return true;
      if (found === home && folder !== real && isSecretName(simplified(relative(folder, real).split(sep)[0] ?? ""))) return true;
    }
    const stats = statOf(real);
    return stats?.isFile() === true && isSecretFile(stats);
  };

  const isSecretFile = (stats: Stats): boolean => {
    const own = secrets().map((path) => identity(path));
    return own.includes(idOf(stats)) || (stats.nlink > 1 && isSessionFile(stats));
  };

  const isBelow = (real: string, own: readonly string[]): boolean => {
    const known = new Set(own.map(identity).filter((id) => id !== undefined));
    const spelled = own.map((path) => simplified(realOf(path)));
    return ancestors(real).some((path) => {
      const id = identity(path);
      return (id !== undefined && known.has(id)) || spelled.includes(simplified(path));
    });
  };

  /** The parts of the data folder that tools may write: the wiki's pages, and the agent's own worktree or work folder. */
  const isOpenPlace = (real: string, cwd: string): boolean => {
    if (isBelow(real, [join(paths.wiki, "pages")])) return true;
    const work = realOf(paths.work);
    const [own] = /^[^/]+(?=\/|$)/.exec(relative(work, realOf(cwd))) ?? [];
    if (own !== undefined && own !== ".." && isBelow(real, [join(work, own)])) return true;
    const runs = realOf(paths.runs);
    const [worktree] = /^[^/]+\/worktrees\/[^/]+(?=\/|$)/.exec(relative(runs, realOf(cwd))) ?? [];
    return worktree !== undefined && !worktree.startsWith("..") && isBelow(real, [join(runs, worktree)]);
  };

  const refusalOf = (path: string, real: string, how: Touch["how"], own: readonly string[]): string | undefined => {
    if (/^\/proc\/(\d+|self|thread-self)(\/|$)/.test(real))
      return `${named(path, 300)} is part of a running process; no tool may reach into it.`;
    if (isSecret(real))
      return `${named(path, 300)} holds IO's own secrets or records; no tool may reach it. The user can look at it.`;
    if (how === "write" && isBelow(real, [paths.skills]))
      return `${named(path, 300)} lies in the skills folder, where only a person adds, changes or switches on skills. Use skill_install, or tell the user what "io skill" should do.`;
    if (how === "write" && isBelow(real, readOnly()))
      return `${named(path, 300)} is part of IO itself and is not to be changed. The user can allow changes to IO's code with "selfEditEnabled" in config.json.`;
    if (how === "write" && isBelow(real, [paths.home]) && !own.some((cwd) => isOpenPlace(real, cwd)))
      return `${named(path, 300)} lies in the data folder, where tools write nothing but the wiki's pages and their own worktree. Use wiki_write, or write elsewhere.`;
    return undefined;
  };

  const reach: PathGuard["reach"] = (path, how, cwd, besides = []) => {
    if (path.includes("\0")) return { refusal: "A path cannot hold a NUL character." };
    if (path.split(sep).length > MAX_PARTS) return { refusal: `A path can have at most ${MAX_PARTS} parts.` };
    const real = realOf(locate(path, cwd));
    for (const place of new Set([real, ...kernelReal(path, cwd)])) {
      const refusal = refusalOf(path, place, how, [cwd, ...besides]);
      if (refusal) return { refusal };
    }
    return { real };
  };

  const reachEntry: PathGuard["reachEntry"] = (path, cwd, besides = []) => {
    if (path.includes("\0")) return { refusal: "A path cannot hold a NUL character." };
    const spelled = locate(path, cwd);
    const parent = reach(dirname(spelled), "write", cwd, besides);
    if ("refusal" in parent) return parent;
    const entry = join(parent.real, basename(spelled));
    return isLink(entry) ? { real: entry } : reach(entry, "write", cwd, besides);
  };

  return {
    own: { paths, packageRoot },
    secrets,
    readOnly,
    isSecretFile,
    isOwn: (ino) => secrets().some((path) => lstatSync(path, { bigint: true, throwIfNoEntry: false })?.ino === ino),
    reach,
    reachEntry,
    refuse(path, how, cwd, besides) {
      const reached = reach(path, how, cwd, besides);
      return "refusal" in reached ? reached.refusal : undefined;
    },
  };
}

/** Where npm or pnpm put what IO loads: the folder with IO and its neighbours, and the targets of links there. */
function dependencies(packageRoot: string): string[] {
  const siblings = basename(dirname(packageRoot)) === "node_modules" ? [dirname(packageRoot)] : [];
  const database = dependencyOf(packageRoot, "@photostructure/sqlite");
  const loader = database && dependencyOf(realOf(database), "node-gyp-build");
  return [...siblings, ...[database, loader].flatMap((folder) => (folder === undefined ? [] : [realOf(folder)]))];
}

/** Where the kernel itself would go: for it, `..` after a link is the folder above the link's target. */
function kernelReal(path: string, cwd: string): string[] {
  const whole = path.startsWith("/") ? path : `${cwd}/${path}`;
  const cut = withoutEnd(whole, "/").lastIndexOf("/") + 1;
  try {
    return [realpathSync.native(whole)];
  } catch {
    // The end of the path does not exist yet, so the folder that would contain it decides.
  }
  try {
    return [join(realpathSync.native(whole.slice(0, cut) || "/"), whole.slice(cut))];
  } catch {
    // The folder does not exist either, so the kernel finds nothing there.
    return [];
  }
}

/** The path and every folder above it, nearest first. */
function ancestors(path: string): string[] {
  const above = dirname(path);
  return above === path ? [path] : [path, ...ancestors(above)];
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() === true;
  } catch {
    // A folder on the path is really a file.
    return false;
  }
}

function statOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    // What cannot be read cannot be compared; its name is checked all the same.
    return undefined;
  }
}

function identity(path: string): string | undefined {
  const stats = statOf(path);
  return stats && idOf(stats);
}

/** Some file systems treat names as the same that differ in case or in Unicode composition. */
function simplified(name: string): string {
  return name.normalize("NFC").toLowerCase();
}
