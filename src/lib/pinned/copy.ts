import { basename, dirname } from "node:path";
import { withFolder } from "./folder.ts";
import { type Absent, readPlainAt } from "./read.ts";
import { createFile } from "./write.ts";

/** Copies a regular file to a place where nothing is yet, both by their real paths; says what was there instead if it is none. */
export function copyPlainAt(from: string, to: string, max: number): Absent | undefined {
  const read = readPlainAt(from, max);
  if ("absent" in read) return read.absent;
  withFolder(dirname(to), (folder) => createFile(folder, basename(to), read.bytes, { durable: false }));
  return undefined;
}
