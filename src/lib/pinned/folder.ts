import { closeSync, constants, lstatSync, mkdirSync, openSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { codeOf } from "../errors.ts";
import { realOf } from "../real-path.ts";

/** O_PATH: Linux has it, Node does not export it. Opens a folder as a location only, so read permission is not needed. */
const O_PATH = 0o10000000;

const SINGLE = /^[^/\0]+$/;

/** A folder that was reached without links. While it is held open it stays the same one, even if its path is replaced. */
export interface Folder {
  readonly path: string;
  /** The path of an entry of exactly this folder; `name` is a single name, never a path. */
  entry(name: string): string;
  /** The path of exactly this folder. */
  readonly self: string;
  /** Throws if the folder was moved; needed only where the system cannot hold a folder open. */
  check(): void;
  close(): void;
}

/** Opens a folder by its real path. Throws ELOOP if any part of the path is a link. */
export function openFolder(path: string): Folder {
  return (process.platform === "linux" ? hold(path) : undefined) ?? watch(path);
}

/** Holds a folder open while the work runs. */
export function withFolder<T>(path: string, work: (folder: Folder) => T): T {
  const folder = openFolder(path);
  try {
    return named(folder, () => work(folder));
  } finally {
    folder.close();
  }
}

const CLOSED = ["ENOENT", "ENOTDIR", "ELOOP", "EACCES", "EPERM", "ENAMETOOLONG"];

/**
 * Opens a folder by a relative path that may come from a repository. Undefined if it is missing, not a folder, unreadable,
 * or outside: links and ".." are never followed.
 */
export function openBelow(top: string, path: string): Folder | undefined {
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  if (path.startsWith("/") || parts.includes("..") || path.includes("\0")) return undefined;
  try {
    return openFolder([realOf(top).replace(/\/$/, ""), ...parts].join("/"));
  } catch (error) {
    if (CLOSED.includes(codeOf(error) ?? "")) return undefined;
    throw error;
  }
}

/** Opens a folder by its real path, creating it and missing parents. */
export function makeFolder(path: string, mode = 0o700): Folder {
  try {
    return openFolder(path);
  } catch (error) {
    if (codeOf(error) !== "ENOENT" || dirname(path) === path) throw error;
  }
  const parent = makeFolder(dirname(path), mode);
  try {
    named(parent, () => mkdirSync(parent.entry(basename(path)), mode));
  } catch (error) {
    if (codeOf(error) !== "EEXIST") throw error;
  } finally {
    parent.close();
  }
  return openFolder(path);
}

/** Puts the path that people know into an error. */
export function named<T>(folder: Folder, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (error instanceof Error && folder.self !== folder.path) {
      error.message = error.message.replaceAll(folder.self, folder.path);
      if ("path" in error && typeof error.path === "string") error.path = error.path.replace(folder.self, folder.path);
    }
    throw error;
  }
}

/** /proc shows which folder a handle really is, so a link on the way is noticed. */
function hold(path: string): Folder | undefined {
  const handle = openPlace(path);
  const self = `/proc/self/fd/${handle}`;
  let real: string;
  try {
    real = readlinkSync(self);
  } catch {
    // Without /proc the folder cannot be reached through its handle.
    closeSync(handle);
    return undefined;
  }
  if (real !== path) {
    closeSync(handle);
    throw linked(path);
  }
  return { path, self, entry: (name) => `${self}/${single(name)}`, check: () => {}, close: () => closeSync(handle) };
}

function openPlace(path: string): number {
  try {
    return openSync(path, O_PATH | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  } catch (error) {
    // The system reports a link in the last place as "not a folder".
    throw codeOf(error) === "ENOTDIR" && isLink(path) ? linked(path) : error;
  }
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink();
  } catch {
    // A parent is a file, not a folder.
    return false;
  }
}

/** Compares the folder's identity before and after. */
function watch(path: string): Folder {
  const id = identity(path);
  const check = () => {
    if (identity(path) !== id) throw linked(path);
  };
  return { path, self: path, entry: (name) => join(path, single(name)), check, close: () => {} };
}

function identity(path: string): string {
  const stats = lstatSync(path);
  if (realpathSync(path) !== path) throw linked(path);
  if (!stats.isDirectory()) throw Object.assign(new Error(`ENOTDIR: not a directory, open '${path}'`), { code: "ENOTDIR", path });
  return `${stats.dev}:${stats.ino}`;
}

function linked(path: string): Error {
  return Object.assign(new Error(`ELOOP: a part of the path is a link, open '${path}'`), { code: "ELOOP", path });
}

function single(name: string): string {
  if (!SINGLE.test(name) || name === "." || name === "..")
    throw Object.assign(new Error(`EINVAL: ${JSON.stringify(name)} is not the name of a file`), { code: "EINVAL" });
  return name;
}
