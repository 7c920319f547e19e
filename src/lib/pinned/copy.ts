import { basename, dirname } from "node:path";
import { withFolder } from "./folder.ts";
import { type Absent, readPlainAt } from "./read.ts";
import { createFile } from "./write.ts";

/**
 * Copies a regular file to a path that does not exist yet; both are real paths. Returns what `from` is if not a regular file.
 * With `keepTime` the copy gets the same modification time, or up to two milliseconds earlier.
 */
export function copyPlainAt(from: string, to: string, max: number, { keepTime = false } = {}): Absent | undefined {
  const read = readPlainAt(from, max);
  if ("absent" in read) return read.absent;
  const atMs = Number(read.stats.mtimeNs / 1_000_000n) - 1;
  withFolder(dirname(to), (folder) =>
    createFile(folder, basename(to), read.bytes, { durable: false, ...(keepTime && { atMs }) }),
  );
  return undefined;
}
