import { randomBytes } from "node:crypto";
import { accessSync, constants, mkdirSync, readdirSync, readlinkSync, renameSync, symlinkSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { codeOf, UserError } from "../lib/errors.ts";
import { isFolder } from "../lib/is-folder.ts";
import { type Folder, openBelow } from "../lib/pinned/folder.ts";
import { statsOf } from "../lib/pinned/list.ts";
import { realOf } from "../lib/real-path.ts";
import { statsAt } from "../lib/stats-at.ts";
import { removeTree } from "../process/remove-tree.ts";
import { copyTree } from "./copy-tree.ts";
import { moved, relocate } from "./relocate.ts";
import type { CheckoutStatus, Repo } from "./repository.ts";

/** Folders of installed dependencies; a worktree without them cannot run the project's checks. */
const FOLDERS = new Set([
  ...["node_modules", "bower_components", ".yarn"],
  ...[".venv", "venv", "vendor", ".bundle", "Pods", "deps", "elm-stuff", ".dart_tool"],
]);
/** Files that serve as installed dependencies. */
const FILES = new Set([".pnp.cjs", ".pnp.loader.mjs"]);
/** Parts that tools modify in place, and that must therefore not be shared. */
const CACHES = [".cache", ".vite", ".vitest"];

export interface Bringing {
  /** The roots of the source and the target tree. */
  from: string;
  to: string;
  /** Relative to the root. */
  names: readonly string[];
  /** A staging folder on the same disk as the target tree. */
  scratch: string;
  /** Whether the trees may share files by hard links, because neither is the user's own. */
  share: boolean;
  signal: AbortSignal;
}

/** The installed folders and files that git ignores, the root's first. A name proves little: `.env` is usually a file. */
export function installedIn({ root, ignored }: Pick<Repo, "root"> & Pick<CheckoutStatus, "ignored">): string[] {
  const depth = (name: string) => name.split("/").length;
  return ignored
    .map((name) => name.replace(/\/$/, ""))
    .filter((name) => isInstalled(join(root, name)))
    .sort((a, b) => depth(a) - depth(b));
}

function isInstalled(path: string): boolean {
  if (!isReadable(path)) return false;
  if (FILES.has(basename(path))) return statsAt(path)?.isFile() ?? false;
  return isFolder(path) && (FOLDERS.has(basename(path)) || (statsAt(join(path, "pyvenv.cfg"))?.isFile() ?? false));
}

function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | (isFolder(path) ? constants.X_OK : 0));
    return true;
  } catch {
    // Missing, inaccessible, or a broken link.
    return false;
  }
}

/**
 * Copies installed folders from one tree to another, each atomically, and rewrites paths that point into the first tree.
 * Later installs there do not affect the user's checkout, whose files are copied (sharing blocks where the file system
 * can). Reads and writes only below the two roots.
 */
export async function bring({ names, ...where }: Bringing): Promise<void> {
  for (const [index, name] of names.entries()) {
    const [source, target] = [openBelow(where.from, dirname(name)), openBelow(where.to, dirname(name))];
    try {
      if (source && target) await bringOne(name, { source, target, index, ...where });
    } finally {
      source?.close();
      target?.close();
    }
  }
}

interface BringingOne extends Omit<Bringing, "names"> {
  /** The source and target folders. */
  source: Folder;
  target: Folder;
  index: number;
}

async function bringOne(path: string, { source, target, index, from, to, scratch, share, signal }: BringingOne): Promise<void> {
  const name = basename(path);
  const there = statsOf(source, name);
  if (!there || statsOf(target, name)) return;
  if (there.isSymbolicLink()) {
    symlinkSync(moved(resolve(from, dirname(path), readlinkSync(source.entry(name))), from, to), target.entry(name));
    return;
  }
  if (!(there.isDirectory() || there.isFile()) || !isReadable(source.entry(name))) return;
  mkdirSync(scratch, { recursive: true, mode: 0o700 });
  const own = realOf(scratch);
  const prefix = `installed-${basename(to)}-${index}-`;
  await clearCut(own, prefix);
  const made = join(own, `${prefix}${randomBytes(4).toString("hex")}`);
  await copyTree(source, name, made, { share, signal });
  if (share && statsAt(made)?.isDirectory()) for (const cache of CACHES) await removeTree(join(made, cache));
  await relocate(made, { from, to, at: join(to, path) }, signal);
  try {
    renameSync(made, target.entry(name));
  } catch (error) {
    if (!["EEXIST", "ENOTEMPTY", "ENOTDIR", "EISDIR"].includes(codeOf(error) ?? "")) throw error;
    // Somebody has installed it there meanwhile.
    await removeTree(made);
  }
}

/** Removes an interrupted copy. A process that is still writing it never touches the valid copy. */
async function clearCut(scratch: string, prefix: string): Promise<void> {
  for (const name of readdirSync(scratch).filter((each) => each.startsWith(prefix))) {
    await removeTree(join(scratch, name)).catch((error: unknown) => {
      if (!(error instanceof UserError)) throw error;
      // Still being written; it is removed with the rest of the folder after the run.
    });
  }
}
