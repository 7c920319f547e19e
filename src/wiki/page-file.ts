import { closeSync, constants, lstatSync, openSync, readFileSync } from "node:fs";
import { codeOf } from "../lib/errors.ts";
import { metaOf } from "./markdown.ts";
import type { Entry } from "./page-index.ts";

export const MAX_PAGE_BYTES = 10_000_000;

/** What tells one state of a file from another: when it was written, how long it is, and which file it is. */
export interface Stamp {
  mtimeNs: bigint;
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

export function stampText({ mtimeNs, size, ino }: Stamp): string {
  return `${mtimeNs}:${size}:${ino}`;
}

/** The text of a plain file, or undefined if there is none any more. */
export function readText(file: string): string | undefined {
  let handle: number | undefined;
  try {
    handle = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW);
    return readFileSync(handle, "utf8");
  } catch (error) {
    // Removed, or replaced by a folder or a link since it was listed, or kept from us by its mode: no page to us.
    if (["ENOENT", "ENOTDIR", "ELOOP", "EISDIR", "EMLINK", "EACCES", "EPERM"].includes(codeOf(error) ?? "")) return undefined;
    throw error;
  } finally {
    if (handle !== undefined) closeSync(handle);
  }
}

/** Reads a page whole; undefined for what is missing, no plain file, or too long to be a page. */
export function readDoc(path: string, file: string, isSecret: IsSecret): PageDoc | undefined {
  const stamp = stampOf(file);
  if (stamp === undefined || stamp.size > MAX_PAGE_BYTES || (stamp.nlink > 1n && isSecret(stamp.ino))) return undefined;
  const text = readText(file);
  if (text === undefined) return undefined;
  return { path, ...metaOf(path, text), bytes: Number(stamp.size), mtime: Number(stamp.mtimeNs / 1_000_000n), text, stamp };
}
