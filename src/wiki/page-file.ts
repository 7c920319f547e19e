import { lstatSync } from "node:fs";
import { codeOf } from "../lib/errors.ts";
import { type ReadFile, readPlainAt } from "../lib/pinned/read.ts";
import { metaOf } from "./markdown.ts";
import type { Entry } from "./page-index.ts";

export const MAX_PAGE_BYTES = 10_000_000;

/** Identifies one state of a file: its times, size and inode. */
export interface Stamp {
  mtimeNs: bigint;
  /** Cannot be set by a program, so a file whose mtime was set back still shows as changed. */
  ctimeNs: bigint;
  size: bigint;
  ino: bigint;
  /** The number of hard links. */
  nlink: bigint;
}

/** Whether an inode is one of IO's own records. A hard link to one is not a page. */
export type IsSecret = (ino: bigint) => boolean;

/** A page with its text, as read from disk. */
export interface PageDoc extends Entry {
  text: string;
  stamp: Stamp;
}

/** The state of a plain file; undefined for anything else. */
export function stampOf(file: string): Stamp | undefined {
  try {
    const stat = lstatSync(file, { bigint: true, throwIfNoEntry: false });
    return stat?.isFile() ? stat : undefined;
  } catch (error) {
    if (codeOf(error) === "ENOTDIR" || codeOf(error) === "EACCES") return undefined;
    throw error;
  }
}

export function stampText({ mtimeNs, ctimeNs, size, ino }: Stamp): string {
  return `${mtimeNs}:${ctimeNs}:${size}:${ino}`;
}

/** Reads a page's file by its real path; refuses hard links to IO's own records. */
export function readPageFile(file: string, isSecret: IsSecret): ReadFile {
  const read = readPlainAt(file, MAX_PAGE_BYTES);
  return "stats" in read && read.stats.nlink > 1n && isSecret(read.stats.ino) ? { absent: "not permitted" } : read;
}

/** The text of a plain file, or undefined if there is none. */
export function readText(file: string, isSecret: IsSecret): string | undefined {
  const read = readPageFile(file, isSecret);
  return "absent" in read ? undefined : read.bytes.toString("utf8");
}

/** Reads a whole page; undefined if it is missing, not a plain file, or too long. */
export function readDoc(path: string, file: string, isSecret: IsSecret): PageDoc | undefined {
  const read = readPageFile(file, isSecret);
  if ("absent" in read) return undefined;
  const { bytes, stats } = read;
  const text = bytes.toString("utf8");
  return { path, ...metaOf(path, text), bytes: bytes.length, mtime: Number(stats.mtimeNs / 1_000_000n), text, stamp: stats };
}
