import { createHash } from "node:crypto";
import { closeSync, readlinkSync, readSync } from "node:fs";
import { basename, dirname } from "node:path";
import { hasEntry } from "../git/nested.ts";
import { type Breath, createBreath } from "../lib/breath.ts";
import { codeOf } from "../lib/errors.ts";
import { type Folder, openBelow } from "../lib/pinned/folder.ts";
import { statsOf } from "../lib/pinned/list.ts";
import { openPlain } from "../lib/pinned/read.ts";
import type { ChangedFolder, Entry } from "../store/turn-changes.ts";

/** The largest file that is kept, in bytes. */
export const LARGEST = 20_000_000;
const LINK = "120000";
const CHUNK = 1_000_000;

export type Found = { entry: Entry | null } | { unreadable: string };

/** The current file at a path below a root, as git would store it; null if there is none, or if a link leads to it. */
export async function entryAt(
  root: string,
  path: string,
  { hash, fileMode }: Pick<ChangedFolder, "hash" | "fileMode">,
): Promise<Found> {
  const folder = openBelow(root, dirname(path));
  if (folder === undefined) return { entry: null };
  try {
    const name = basename(path);
    const stats = statsOf(folder, name);
    if (stats === undefined || stats.isDirectory()) return { entry: null };
    if (stats.isSymbolicLink()) {
      const target = readlinkSync(folder.entry(name), { encoding: "buffer" });
      return { entry: { mode: LINK, oid: blobHash(hash, target) } };
    }
    if (!stats.isFile()) return { unreadable: "it is no regular file" };
    if (stats.size > BigInt(LARGEST)) return { unreadable: "it is too large" };
    const oid = await hashOf(folder, name, hash, createBreath());
    if (oid === undefined) return { unreadable: "it cannot be read" };
    const permissions = Number(stats.mode) & 0o777;
    return { entry: { mode: fileMode && (permissions & 0o100) !== 0 ? "100755" : "100644", oid, permissions } };
  } catch (error) {
    if (codeOf(error) === undefined) throw error;
    return { unreadable: "it cannot be read" };
  } finally {
    folder.close();
  }
}

/** Whether two entries are the same file; permissions that git does not record do not count. */
export function isSame(one: Entry | null, other: Entry | null, { fileMode }: Pick<ChangedFolder, "fileMode">): boolean {
  if (one === null || other === null) return one === other;
  const kindOf = ({ mode }: Entry) => (fileMode || mode === LINK ? mode : "100644");
  return one.oid === other.oid && kindOf(one) === kindOf(other);
}

export interface Sorted {
  gone: string[];
  there: string[];
  /** Permissions that git does not record. */
  permissions: Map<string, number>;
  /** What cannot be kept, and why. */
  leftOut: { path: string; why: string }[];
}

/** Sorts paths by whether they can be kept, judging by what is there now. */
export async function sortPaths(root: string, paths: readonly string[], most: { files: number; bytes: number }): Promise<Sorted> {
  const sorted: Sorted = { gone: [], there: [], permissions: new Map(), leftOut: [] };
  const breathe = createBreath();
  const folders = new Map<string, Folder | undefined>();
  let bytes = 0;
  try {
    for (const path of paths) {
      await breathe();
      const why = whyNot(path);
      if (why !== undefined) {
        sorted.leftOut.push({ path, why });
        continue;
      }
      const folder = folders.has(dirname(path)) ? folders.get(dirname(path)) : openBelow(root, dirname(path));
      // Handles are scarce, so only the latest folders are held open.
      if (folders.size > 200) closeAll(folders);
      folders.set(dirname(path), folder);
      const stats = folder && statsOf(folder, basename(path));
      if (!stats) sorted.gone.push(path);
      // A folder has replaced a file; only if it is a repository does it count as one entry.
      else if (stats.isDirectory()) (hasEntry(root, path, ".git") ? sorted.there : sorted.gone).push(path);
      else if (stats.isSymbolicLink()) sorted.there.push(path);
      else if (!stats.isFile()) sorted.leftOut.push({ path, why: "no regular file" });
      else if (stats.size > BigInt(LARGEST)) sorted.leftOut.push({ path, why: `larger than ${LARGEST / 1_000_000} MB` });
      else if (bytes + Number(stats.size) > most.bytes || sorted.there.length >= most.files)
        sorted.leftOut.push({ path, why: "too much at once" });
      else if (!isReadable(folder as Folder, basename(path))) sorted.leftOut.push({ path, why: "not readable" });
      else {
        bytes += Number(stats.size);
        sorted.there.push(path);
        const permissions = Number(stats.mode) & 0o777;
        if (permissions !== 0o644 && permissions !== 0o755) sorted.permissions.set(path, permissions);
      }
    }
  } finally {
    closeAll(folders);
  }
  return sorted;
}

function closeAll(folders: Map<string, Folder | undefined>): void {
  for (const folder of folders.values()) folder?.close();
  folders.clear();
}

export const NESTED = "another git repository inside this one";

/** Why a name is not the path of a project's file. */
function whyNot(path: string): string | undefined {
  // Git lists nothing else with a slash at the end.
  if (/[^/]\/$/.test(path) && whyNot(path.slice(0, -1)) === undefined) return NESTED;
  if (path.includes("\ufffd")) return "its name is not valid UTF-8";
  const parts = path.split("/");
  const isOdd =
    path.startsWith("/") || parts.some((part) => part === "" || part === "." || part === ".." || part.toLowerCase() === ".git");
  return isOdd ? "no path of the project" : undefined;
}

function isReadable(folder: Folder, name: string): boolean {
  const opened = openPlain(folder, name);
  if ("absent" in opened) return false;
  closeSync(opened.handle);
  return true;
}

async function hashOf(folder: Folder, name: string, hash: ChangedFolder["hash"], breathe: Breath): Promise<string | undefined> {
  const opened = openPlain(folder, name);
  if ("absent" in opened) return undefined;
  const { handle, stats } = opened;
  try {
    const sum = createHash(hash).update(`blob ${stats.size}\0`);
    const buffer = Buffer.allocUnsafe(Math.min(CHUNK, Math.max(stats.size, 1)));
    for (let left = stats.size; left > 0; ) {
      const read = readSync(handle, buffer, 0, Math.min(buffer.length, left), null);
      // The file was truncated meanwhile, so it has changed.
      if (read === 0) return undefined;
      sum.update(buffer.subarray(0, read));
      left -= read;
      await breathe();
    }
    return sum.digest("hex");
  } finally {
    closeSync(handle);
  }
}

export function blobHash(hash: ChangedFolder["hash"], bytes: Uint8Array): string {
  return createHash(hash).update(`blob ${bytes.length}\0`).update(bytes).digest("hex");
}
