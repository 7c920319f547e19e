import { type BigIntStats, closeSync, constants, fstatSync, lstatSync, openSync, readSync, type Stats } from "node:fs";
import { basename, dirname, join } from "node:path";
import { codeOf } from "../errors.ts";
import { realOf } from "../real-path.ts";
import { type Folder, withFolder } from "./folder.ts";

/** What was found in place of a regular file. */
export type Absent = "missing" | "a link" | "a folder" | "not a regular file" | "too large" | "not permitted";
export type OpenFile<T = Stats> = { handle: number; stats: T } | { absent: Absent };
export type ReadFile = { bytes: Buffer; stats: BigIntStats } | { absent: Absent };

// O_NOCTTY and O_NONBLOCK: opening a terminal must not make it ours, and a pipe must not block.
const FLAGS = constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0) | (constants.O_NOCTTY ?? 0);

/** Opens a regular file of a folder for reading; the caller closes it. `isListed` skips the type check. */
export function openPlain(folder: Folder, name: string, { isListed = false } = {}): OpenFile {
  return openAndLook(folder, name, isListed, (handle) => fstatSync(handle));
}

/**
 * Opens an entry that a listing showed as a regular file; the caller closes it. The entry may have been replaced since, so the
 * caller must check the handle before it uses the content.
 */
export function openListed(folder: Folder, name: string): { handle: number } | { absent: Absent } {
  let handle: number | undefined;
  try {
    handle = openSync(folder.entry(name), FLAGS);
    folder.check();
    return { handle };
  } catch (error) {
    if (handle !== undefined) closeSync(handle);
    return { absent: absentBy(error) };
  }
}

/** Reads a regular file of a folder whole, or returns what is there instead. A file over `max` bytes is not read. */
export function readPlain(folder: Folder, name: string, max: number): ReadFile {
  const opened = openAndLook(folder, name, false, (handle) => fstatSync(handle, { bigint: true }));
  if ("absent" in opened) return opened;
  const { handle, stats } = opened;
  try {
    if (stats.size > BigInt(max)) return { absent: "too large" };
    const bytes = readUpTo(handle, Number(stats.size), max);
    return bytes === undefined ? { absent: "too large" } : { bytes, stats };
  } finally {
    closeSync(handle);
  }
}

/** Reads a regular file by its real path; no part of it may be a link. */
export function readPlainAt(path: string, max: number): ReadFile {
  return inFolderOf(path, (folder) => readPlain(folder, basename(path), max));
}

/** The text of a small file in a folder whose path may contain links; undefined if it is not a readable regular file. */
export function smallTextAt(path: string, max = 10_000): string | undefined {
  const read = readPlainAt(join(realOf(dirname(path)), basename(path)), max);
  return "bytes" in read ? read.bytes.toString("utf8") : undefined;
}

/** Works in the parent folder of a file, given by real path; a folder that cannot be opened contains no file. */
export function inFolderOf<T>(path: string, work: (folder: Folder) => T): T | { absent: Absent } {
  let folderIsOpen = false;
  try {
    return withFolder(dirname(path), (folder) => {
      folderIsOpen = true;
      return work(folder);
    });
  } catch (error) {
    if (folderIsOpen) throw error;
    return { absent: absentBy(error) };
  }
}

/** Words for what is there instead of a file, to follow its name in a message. */
export function tellAbsent(absent: Absent): string {
  if (absent === "missing") return "is not there";
  if (absent === "a link") return "is a link or lies behind one, and links are not followed here";
  return absent === "too large" ? "is too large" : absent === "not permitted" ? "may not be read" : `is ${absent}`;
}

type Look<T> = (handle: number) => T;

function openAndLook<T extends Stats | BigIntStats>(folder: Folder, name: string, isListed: boolean, look: Look<T>): OpenFile<T> {
  try {
    return openChecked(folder, name, isListed, look);
  } catch (error) {
    return { absent: absentBy(error) };
  }
}

function openChecked<T extends Stats | BigIntStats>(folder: Folder, name: string, isListed: boolean, look: Look<T>): OpenFile<T> {
  const entry = folder.entry(name);
  // Opening a device can have effects, so its type is checked first.
  const kind = isListed ? undefined : kindOf(lstatSync(entry));
  if (kind !== undefined) return { absent: kind };
  const handle = openSync(entry, FLAGS);
  try {
    folder.check();
    const stats = look(handle);
    const now = kindOf(stats);
    if (now === undefined) return { handle, stats };
    closeSync(handle);
    return { absent: now };
  } catch (error) {
    closeSync(handle);
    throw error;
  }
}

function kindOf(stats: Stats | BigIntStats): Absent | undefined {
  if (stats.isFile()) return undefined;
  if (stats.isSymbolicLink()) return "a link";
  return stats.isDirectory() ? "a folder" : "not a regular file";
}

/** The file may grow while it is read; anything past `max` is refused. */
function readUpTo(handle: number, size: number, max: number): Buffer | undefined {
  let buffer = Buffer.allocUnsafe(Math.min(size, max) + 1);
  let length = 0;
  for (;;) {
    const read = readSync(handle, buffer, length, buffer.length - length, null);
    length += read;
    if (length > max) return undefined;
    if (read === 0) return buffer.subarray(0, length);
    if (length === buffer.length) buffer = Buffer.concat([buffer], Math.min(buffer.length * 2, max + 1));
  }
}

const ABSENT: Readonly<Record<string, Absent>> = {
  ENOENT: "missing",
  ENOTDIR: "missing",
  ENAMETOOLONG: "missing",
  EINVAL: "missing",
  ELOOP: "a link",
  EMLINK: "a link",
  EISDIR: "a folder",
  ENXIO: "not a regular file",
  ENODEV: "not a regular file",
  EAGAIN: "not a regular file",
  EOPNOTSUPP: "not a regular file",
  EACCES: "not permitted",
  EPERM: "not permitted",
};

function absentBy(error: unknown): Absent {
  const absent = ABSENT[codeOf(error) ?? ""];
  if (absent === undefined) throw error;
  return absent;
}
