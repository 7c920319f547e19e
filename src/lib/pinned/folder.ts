import { closeSync, constants, lstatSync, mkdirSync, openSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { codeOf } from "../errors.ts";

/** Linux has it; Node does not name it. Opens a folder as a place alone, so that it need not be readable. */
const O_PATH = 0o10000000;

const SINGLE = /^[^/\0]+$/;

/** A folder that was found without passing a link, and stays the same one while it is held, whatever its path leads to by then. */
export interface Folder {
  readonly path: string;
  /** How the system is told of an entry of this very folder; `name` is a single name, never a path. */
  entry(name: string): string;
  /** How the system is told of the folder itself. */
  readonly self: string;
  /** Throws if the folder is no longer where it was found; only needed where the system cannot hold a folder. */
  check(): void;
  close(): void;
}

/** Opens a folder by its real path. Throws ELOOP if a part of the path is a link, as the system does for the last one. */
export function openFolder(path: string): Folder {
  return (process.platform === "linux" ? hold(path) : undefined) ?? watch(path);
}

/** Opens a folder for as long as the work takes. */
export function withFolder<T>(path: string, work: (folder: Folder) => T): T {
  const folder = openFolder(path);
  try {
    return named(folder, () => work(folder));
  } finally {
    folder.close();
  }
}

/** Opens a folder by its real path, and makes it and those above it where they are missing. */
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

/** Lets an error name the file as people know it. */
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

/** Where the system tells which folder a handle really is, one that was reached by a link gives itself away. */
function hold(path: string): Folder | undefined {
  const handle = openPlace(path);
  const self = `/proc/self/fd/${handle}`;
  let real: string;
  try {
    real = readlinkSync(self);
  } catch {
    // There is no /proc here, so the folder cannot be reached by its handle.
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
    // The system calls a link in the last place no folder.
    throw codeOf(error) === "ENOTDIR" && isLink(path) ? linked(path) : error;
  }
}

function isLink(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink();
  } catch {
    // A file stands where a folder above it is needed.
    return false;
  }
}

/** Looks which folder it is, before and after. */
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
