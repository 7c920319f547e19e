import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  futimesSync,
  openSync,
  renameSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { codeOf } from "../errors.ts";
import { type Folder, named } from "./folder.ts";

export interface ReplaceOptions {
  mode?: number;
  /** What it replaces, whose mode it keeps, and whose owner where we may give files away. */
  like?: { uid: bigint; gid: bigint; mode: bigint };
  /** Whether to wait until it is on the disk. */
  durable?: boolean;
  /** When it is said to be written; without this by the clock of the file system, which may be some milliseconds behind ours. */
  atMs?: number;
}

/** Replaces a file so that a reader, or a crash at any moment, finds the old text or the new one, never a part. */
export function replaceFile(folder: Folder, name: string, content: string | Uint8Array, options: ReplaceOptions = {}): void {
  const { durable = true } = options;
  const temporary = `.${name.slice(0, 40)}.${randomBytes(6).toString("hex")}.tmp`;
  named(folder, () => {
    try {
      createFile(folder, temporary, content, options);
      folder.check();
      renameSync(folder.entry(temporary), folder.entry(name));
    } catch (error) {
      forget(folder, temporary);
      // A person knows the file by this name, and a failed write names none at all.
      throw error instanceof Error ? Object.assign(error, { path: `${folder.path}/${name}` }) : error;
    }
  });
  if (durable) syncFolder(folder);
}

/** Makes a file that must not be there yet, in any form. */
export function createFile(
  folder: Folder,
  name: string,
  content: string | Uint8Array,
  { mode = 0o600, like, durable = true, atMs }: ReplaceOptions = {},
): void {
  named(folder, () => {
    const file = openSync(folder.entry(name), constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, like ? 0o600 : mode);
    try {
      writeAll(file, typeof content === "string" ? Buffer.from(content, "utf8") : content);
      if (like && process.getuid?.() === 0) fchownSync(file, Number(like.uid), Number(like.gid));
      if (like) fchmodSync(file, Number(like.mode) & 0o7777);
      // Half a millisecond more, so that what is lost on the way into seconds does not lead into the one before.
      if (atMs !== undefined) futimesSync(file, (atMs + 0.5) / 1000, (atMs + 0.5) / 1000);
      if (durable) fsyncSync(file);
    } finally {
      closeSync(file);
    }
  });
}

/** Adds to the end of a regular file, which is made if there is none. */
export function appendFile(folder: Folder, name: string, text: string, mode = 0o600): void {
  const flags = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0);
  named(folder, () => {
    const file = openSync(folder.entry(name), flags | (constants.O_NONBLOCK ?? 0), mode);
    try {
      folder.check();
      const stats = fstatSync(file);
      if (!stats.isFile() || stats.nlink > 1)
        throw Object.assign(new Error(`EPERM: not a plain file, open '${folder.entry(name)}'`), {
          code: "EPERM",
          path: folder.entry(name),
        });
      writeAll(file, Buffer.from(text, "utf8"));
    } finally {
      closeSync(file);
    }
  });
}

/** Takes a file or a link away; tells whether there was one. */
export function removeFile(folder: Folder, name: string): boolean {
  try {
    named(folder, () => {
      folder.check();
      unlinkSync(folder.entry(name));
    });
    return true;
  } catch (error) {
    if (codeOf(error) === "ENOENT") return false;
    throw error;
  }
}

/** Makes a rename in the folder survive a power cut, where the system lets a folder be opened. */
export function syncFolder(folder: Folder): void {
  let handle: number | undefined;
  try {
    handle = openSync(`${folder.self}/.`, constants.O_RDONLY | (constants.O_DIRECTORY ?? 0));
    fsyncSync(handle);
  } catch {
    // Some systems refuse to open or sync a folder; the rename itself is still atomic there.
  } finally {
    if (handle !== undefined) closeSync(handle);
  }
}

function forget(folder: Folder, temporary: string): void {
  try {
    unlinkSync(folder.entry(temporary));
  } catch {
    // It was never made, or is already renamed: nothing is left behind either way.
  }
}

function writeAll(file: number, bytes: Uint8Array): void {
  for (let written = 0; written < bytes.length; ) written += writeSync(file, bytes, written);
}
