import { lstatSync, realpathSync, type Stats, statSync } from "node:fs";
import { basename, dirname, join, relative, sep } from "node:path";
import type { Paths } from "../lib/paths.ts";
import { named } from "../lib/quoted.ts";
import { locate, realOf } from "../lib/real-path.ts";
import { withoutEnd } from "../lib/trim.ts";
import { createFolderMembers, entries, idOf } from "./folder-members.ts";
import type { Touch } from "./tool.ts";

export interface GuardDeps {
  paths: Paths;
  packageRoot: string;
  /** Other places from which IO starts programs of its own. */
  programs?: readonly string[];
  selfEdit: () => boolean;
}

export type Reached = { real: string } | { refusal: string };

/** Keeps the model's hands off IO's own secrets and code, by whatever path they are reached. */
export interface PathGuard {
  /** Where this path really leads, or why it may not be reached. */
  reach(path: string, how: Touch["how"], cwd: string): Reached;
  /** Why this path may not be reached, or nothing. */
  refuse(path: string, how: Touch["how"], cwd: string): string | undefined;
  /** The files and folders no tool may read. */
  secrets(): string[];
  /** The files and folders no tool may write just now. */
  readOnly(): string[];
  /** Whether an open file is one that no tool may read, whatever path led to it. */
  isSecretFile(stats: Stats): boolean;
  /** Whether a file of the data folder's disk, by its number, is one that no tool may read. */
  isOwn(ino: bigint): boolean;
}

const CODE = ["bin", "dist", "src", "agents", "pipelines", "rehearsal", "node_modules", ".runtime", "package.json"];

export function createPathGuard({ paths, packageRoot, programs = [], selfEdit }: GuardDeps): PathGuard {
  const names = [paths.token, paths.config, paths.worker, paths.cluster].map((path) => basename(path));
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
  // Installed beside other packages, IO's own dependencies are its neighbours.
  const neighbours = basename(dirname(packageRoot)) === "node_modules" ? [dirname(packageRoot)] : [];
  const code = () => [...CODE.map((name) => join(packageRoot, name)), ...neighbours, ...programs];
  const readOnly = () => [paths.daemon, paths.skills, paths.scratch, ...(selfEdit() ? [] : code())];

  const isSecret = (real: string): boolean => {
    const home = identity(paths.home);
    const store = identity(paths.sessions);
    for (const folder of ancestors(real)) {
      const found = identity(folder);
      if (found === undefined) continue;
      if (found === store) return true;
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

  /** The places of the data folder that tools may write: the wiki's pages, and the worktrees of runs, each for its own agents. */
  const isOpenPlace = (real: string): boolean =>
    isBelow(real, [join(paths.wiki, "pages")]) || relative(realOf(paths.runs), real).split(sep)[1] === "worktrees";

  const refusalOf = (path: string, real: string, how: Touch["how"]): string | undefined => {
    if (/^\/proc\/(\d+|self|thread-self)(\/|$)/.test(real))
      return `${named(path, 300)} is part of a running process; no tool may reach into it.`;
    if (isSecret(real))
      return `${named(path, 300)} holds IO's own secrets or records; no tool may reach it. The user can look at it.`;
    if (how === "write" && isBelow(real, [paths.skills]))
      return `${named(path, 300)} lies in the skills folder, where only a person adds, changes or switches on skills. Use skill_install, or tell the user what "io skill" should do.`;
    if (how === "write" && isBelow(real, readOnly()))
      return `${named(path, 300)} is part of IO itself and is not to be changed. The user can allow changes to IO's code with "selfEditEnabled" in config.json.`;
    if (how === "write" && isBelow(real, [paths.home]) && !isOpenPlace(real))
      return `${named(path, 300)} lies in the data folder, where tools write nothing but the wiki's pages. Use wiki_write, or write elsewhere.`;
    return undefined;
  };

  const reach: PathGuard["reach"] = (path, how, cwd) => {
    if (path.includes("\0")) return { refusal: "A path cannot hold a NUL character." };
    const real = realOf(locate(path, cwd));
    for (const place of new Set([real, ...kernelReal(path, cwd)])) {
      const refusal = refusalOf(path, place, how);
      if (refusal) return { refusal };
    }
    return { real };
  };

  return {
    secrets,
    readOnly,
    isSecretFile,
    isOwn: (ino) => secrets().some((path) => lstatSync(path, { bigint: true, throwIfNoEntry: false })?.ino === ino),
    reach,
    refuse(path, how, cwd) {
      const reached = reach(path, how, cwd);
      return "refusal" in reached ? reached.refusal : undefined;
    },
  };
}

/** Where the system itself would go: it takes `..` after a link for the folder above the link's target. */
function kernelReal(path: string, cwd: string): string[] {
  const whole = path.startsWith("/") ? path : `${cwd}/${path}`;
  const cut = withoutEnd(whole, "/").lastIndexOf("/") + 1;
  try {
    return [realpathSync.native(whole)];
  } catch {
    // Its end does not exist yet: the folder it would stand in decides.
  }
  try {
    return [join(realpathSync.native(whole.slice(0, cut) || "/"), whole.slice(cut))];
  } catch {
    // The folder does not exist either, so the system finds nothing there.
    return [];
  }
}

/** The path and every folder above it, nearest first. */
function ancestors(path: string): string[] {
  const above = dirname(path);
  return above === path ? [path] : [path, ...ancestors(above)];
}

function statOf(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    // What cannot be looked at cannot be compared; its name is judged all the same.
    return undefined;
  }
}

function identity(path: string): string | undefined {
  const stats = statOf(path);
  return stats && idOf(stats);
}

/** Some file systems take names for the same that differ in case or in composition. */
function simplified(name: string): string {
  return name.normalize("NFC").toLowerCase();
}
