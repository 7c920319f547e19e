import { lstatSync } from "node:fs";
import { codeOf } from "../lib/errors.ts";
import { type ReadFile, readPlainAt } from "../lib/pinned/read.ts";
import { metaOf } from "./markdown.ts";
import type { Entry } from "./page-index.ts";

export const MAX_PAGE_BYTES = 10_000_000;

/** What tells one state of a file from another: when it was written, how long it is, and which file it is. */
export interface Stamp {
  mtimeNs: bigint;
  /** Nobody can set it, so that a file whose other times were set back still shows that it changed. */
  ctimeNs: bigint;
  size: bigint;
  ino: bigint;
  /** How many names the file has. */
  nlink: bigint;
}

/** Whether a file, by its number, is one of IO's own records: another name of it among the pages makes no page of it. */
export type IsSecret = (ino: bigint) => boolean;

/** A page with its text, as it stands on disk. */
export interface PageDoc extends Entry {
  text: string;
  stamp: Stamp;
}

/** The state of a plain file; undefined for what is missing, a folder or a link. */
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

/** A page's file by its real path; one of IO's own records under another name is none. */
export function readPageFile(file: string, isSecret: IsSecret): ReadFile {
  const read = readPlainAt(file, MAX_PAGE_BYTES);
  return "stats" in read && read.stats.nlink > 1n && isSecret(read.stats.ino) ? { absent: "not permitted" } : read;
}

/** The text of a plain file, or undefined if there is none any more. */
export function readText(file: string, isSecret: IsSecret): string | undefined {
  const read = readPageFile(file, isSecret);
  return "absent" in read ? undefined : read.bytes.toString("utf8");
}

/** Reads a page whole; undefined for what is missing, no plain file, or too long to be a page. */
export function readDoc(path: string, file: string, isSecret: IsSecret): PageDoc | undefined {
  const read = readPageFile(file, isSecret);
  if ("absent" in read) return undefined;
  const { bytes, stats } = read;
  const text = bytes.toString("utf8");
  return { path, ...metaOf(path, text), bytes: bytes.length, mtime: Number(stats.mtimeNs / 1_000_000n), text, stamp: stats };
}
