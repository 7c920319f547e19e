import { lstatSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, relative } from "node:path";
import type { Git } from "../git/command.ts";
import { submoduleAt, submodulesOf } from "../git/nested.ts";
import { repositoryAbove } from "../git/repository.ts";
import { createBreath } from "../lib/breath.ts";
import { codeOf } from "../lib/errors.ts";
import { openFolder } from "../lib/pinned/folder.ts";
import { eachEntryOf, statsOf } from "../lib/pinned/list.ts";
import { locate, realOf } from "../lib/real-path.ts";
import { isWithin } from "../lib/within.ts";
import type { ToolScope, Writes } from "../tools/tool.ts";

/** A folder in which a call may change something. */
export interface Root {
  path: string;
  kind: "git" | "folder";
  /** The paths that it may change there, relative to the root; null for any. */
  paths: string[] | null;
}

/** A folder without git that has more than this is not kept. */
const MOST_ENTRIES = 2_000;
const MOST_BYTES = 50_000_000;
const MOST_SUBMODULES = 10;
export const MOST_NESTED = 10;

/**
 * The folders in which a call may change something: the tops of repositories, and other folders themselves. As in
 * `projectAround`, a repository that contains the user's home or IO's is not the project of what is in it.
 */
export function rootsOf({ paths, below }: Writes, { cwd }: Pick<ToolScope, "cwd">, ioHome: string): Root[] {
  const homes = [realOf(homedir()), realOf(ioHome)];
  const roots = new Map<string, Root>();
  for (const path of paths) {
    const spelled = locate(path, cwd);
    // Links before the end are followed. A link at the end may itself be changed, or lead to what a write changes.
    const places = below ? [realOf(spelled)] : [...new Set([`${realOf(dirname(spelled))}/${nameOf(spelled)}`, realOf(spelled)])];
    for (const real of places) {
      const folder = below ? real : existingAbove(dirname(real));
      if (!isFolder(folder)) continue;
      const above = repositoryAbove(folder);
      const marker = above !== undefined && homes.some((home) => isWithin(dirname(above), home)) ? undefined : above;
      const top = marker === undefined ? plainTop(folder, realOf(cwd)) : dirname(marker);
      const own = below ? null : relative(top, real);
      const known = roots.get(top);
      const all = own === null || known?.paths === null ? null : [...(known?.paths ?? []), own];
      roots.set(top, { path: top, kind: marker === undefined ? "folder" : "git", paths: all });
    }
  }
  return [...roots.values()];
}

/** The submodules checked out in a repository, whose files its own tree does not record. */
export async function submoduleRoots(git: Git, root: string, commonDir: string): Promise<Root[]> {
  if (!lstatSync(`${root}/.gitmodules`, { throwIfNoEntry: false })?.isFile()) return [];
  const found = (await submodulesOf(git, root)).filter(({ folder }) => submoduleAt({ root, commonDir }, folder) !== undefined);
  return found.slice(0, MOST_SUBMODULES).map(({ folder }) => ({ path: `${root}/${folder}`, kind: "git", paths: null }));
}

/** Why a folder without git is too large to be kept; undefined if it is not. */
export async function whyTooMuch(path: string): Promise<string | undefined> {
  let entries = 0;
  let bytes = 0;
  const breathe = createBreath();
  const waiting = [path];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    let folder: ReturnType<typeof openFolder>;
    try {
      folder = openFolder(at);
    } catch (error) {
      if (codeOf(error) === undefined) throw error;
      // Inaccessible, or already gone.
      continue;
    }
    try {
      for await (const entry of eachEntryOf(folder, breathe)) {
        entries += 1;
        if (entry.isDirectory() && entry.name !== "node_modules" && entry.name !== ".venv") waiting.push(`${at}/${entry.name}`);
        if (entry.isFile()) bytes += Number(statsOf(folder, entry.name)?.size ?? 0n);
        if (entries > MOST_ENTRIES) return `it has more than ${MOST_ENTRIES} entries and is no git repository`;
        if (bytes > MOST_BYTES) return `it holds more than ${MOST_BYTES / 1_000_000} MB and is no git repository`;
      }
    } finally {
      folder.close();
    }
  }
  return undefined;
}

/** Repositories inside another that are not part of it, each with everything in it. Git lists them with a slash at the end. */
export function nestedRoots(root: string, commonDir: string, folders: readonly string[]): Root[] {
  const plain = folders.map((folder) => folder.replace(/\/$/, ""));
  const own = plain.filter((folder) => submoduleAt({ root, commonDir }, folder) !== undefined);
  return own.map((folder) => ({ path: `${root}/${folder}`, kind: "git", paths: null }));
}

const nameOf = (path: string) => path.slice(path.lastIndexOf("/") + 1);

/** Edits anywhere below the working folder belong together, in one root. */
function plainTop(folder: string, cwd: string): string {
  return isWithin(cwd, folder) && isFolder(cwd) ? cwd : folder;
}

function existingAbove(path: string): string {
  return dirname(path) === path || isFolder(path) ? path : existingAbove(dirname(path));
}

function isFolder(path: string): boolean {
  try {
    return lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch {
    // It cannot exist, or is inaccessible.
    return false;
  }
}
