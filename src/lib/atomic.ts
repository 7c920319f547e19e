import { randomBytes } from "node:crypto";
import { closeSync, fsyncSync, openSync, renameSync, unlinkSync, writeSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/** Replaces a file so that a reader, or a crash at any moment, finds the old text or the new one, never a part. */
export function writeFileAtomic(path: string, content: string | Uint8Array, mode = 0o600): void {
  const folder = dirname(path);
  const temporary = join(folder, `.${basename(path).slice(0, 40)}.${randomBytes(6).toString("hex")}.tmp`);
  try {
    const file = openSync(temporary, "wx", mode);
    try {
      const bytes = typeof content === "string" ? Buffer.from(content, "utf8") : content;
      for (let written = 0; written < bytes.length; ) written += writeSync(file, bytes, written);
      fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
  } catch (error) {
    try {
      unlinkSync(temporary);
    } catch {
      // It was never made, or is already renamed: nothing is left behind either way.
    }
    // A person knows the file by this name, and a failed write names none at all.
    throw error instanceof Error ? Object.assign(error, { path }) : error;
  }
  syncFolder(folder);
}

/** Makes a rename in the folder survive a power cut, where the system lets a folder be opened. */
export function syncFolder(folder: string): void {
  let handle: number | undefined;
  try {
    handle = openSync(folder, "r");
    fsyncSync(handle);
  } catch {
    // Some systems refuse to open or sync a folder; the rename itself is still atomic there.
  } finally {
    if (handle !== undefined) closeSync(handle);
  }
}
