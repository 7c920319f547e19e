import { randomBytes } from "node:crypto";
import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  futimesSync,
  openSync,
  renameSync,
  symlinkSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { codeOf } from "../errors.ts";
import { type Folder, named } from "./folder.ts";

export interface ReplaceOptions {
  mode?: number;
  /** The file it replaces: its mode is kept, and its owner where we may change owners. */
  like?: { uid: bigint; gid: bigint; mode: bigint };
  /** Whether to wait for fsync. */
  durable?: boolean;
  /** The modification time; by default that of the file system, which may be milliseconds behind ours. */
  atMs?: number;
  /** Called when everything is written and only the rename is left; throwing keeps the old file. */
  beforeRename?: () => void;
}

/** Replaces a file so that a reader, or a crash at any moment, sees the old text or the new one, never a mixture. */
export function replaceFile(folder: Folder, name: string, content: string | Uint8Array, options: ReplaceOptions = {}): void {
  const { durable = true } = options;
  const temporary = temporaryName(name);
  named(folder, () => {
    try {
      createFile(folder, temporary, content, options);
      folder.check();
      options.beforeRename?.();
      renameSync(folder.entry(temporary), folder.entry(name));
    } catch (error) {
      forget(folder, temporary);
      // Name the file that people know: the error of a failed write has no path.
      throw error instanceof Error ? Object.assign(error, { path: `${folder.path}/${name}` }) : error;
    }
  });
  if (durable) syncFolder(folder);
}

/** Replaces a file or link by a link, atomically. */
export function replaceLink(
  folder: Folder,
  name: string,
  target: Uint8Array,
  { beforeRename }: Pick<ReplaceOptions, "beforeRename">,
): void {
  const temporary = temporaryName(name);
  named(folder, () => {
    try {
      symlinkSync(Buffer.from(target), folder.entry(temporary));
      folder.check();
      beforeRename?.();
      renameSync(folder.entry(temporary), folder.entry(name));
    } catch (error) {
      forget(folder, temporary);
      throw error;
    }
  });
  syncFolder(folder);
}

/** The temporary name of a file while it is written. */
const temporaryName = (name: string) => `.${name.slice(0, 40)}.${randomBytes(6).toString("hex")}.tmp`;

/** Creates a file; fails if anything exists at that name. */
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
      if (like) keepOwner(file, like);
      if (like) fchmodSync(file, Number(like.mode) & 0o7777);
      // Half a millisecond more, so that rounding to seconds does not give the millisecond before.
      if (atMs !== undefined) futimesSync(file, (atMs + 0.5) / 1000, (atMs + 0.5) / 1000);
      if (durable) fsyncSync(file);
    } finally {
      closeSync(file);
    }
  });
}

/** Only root can change owners; others can still change the group to one of their own. */
function keepOwner(file: number, { uid, gid }: { uid: bigint; gid: bigint }): void {
  const own = process.getuid?.();
  if (own === 0) fchownSync(file, Number(uid), Number(gid));
  else if (own !== undefined && fstatSync(file).gid !== Number(gid)) {
    try {
      fchownSync(file, own, Number(gid));
    } catch (error) {
      if (codeOf(error) !== "EPERM") throw error;
      // A group that is not ours: the file gets our group.
    }
  }
}

/** Appends to a regular file, creating it if missing. */
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
      try {
        writeAll(file, Buffer.from(text, "utf8"));
      } catch (error) {
        // A full disk may accept only a part: truncate the file to its old length.
        ftruncateSync(file, stats.size);
        throw error;
      }
    } finally {
      closeSync(file);
    }
  });
}

/** Removes a file or link; returns whether there was one. */
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

/** Makes a rename survive a power cut, where the system allows a folder to be synced. */
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
    // It was never created, or is already renamed: nothing is left behind either way.
  }
}

function writeAll(file: number, bytes: Uint8Array): void {
  for (let written = 0; written < bytes.length; ) written += writeSync(file, bytes, written);
}
