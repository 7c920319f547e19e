import { statfsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";

/** A generous minimum of bytes that a turn or step writes. */
const MIN_BYTES = 512 * 1024;
/** The minimum of free inodes: a file system can run out of these before it runs out of bytes. */
const MIN_FILES = 16;
const POLL_MS = 500;

/** Whether the disk of a folder has room for work. True where the system does not say. */
export function hasRoom(folder: string, bytes = MIN_BYTES): boolean {
  try {
    const { blocks, bsize, bfree, bavail, files, ffree } = statfsSync(folder);
    // Some blocks are reserved for root; some file systems report no blocks or no inodes.
    const free = process.getuid?.() === 0 ? bfree : bavail;
    return (blocks === 0 || free * bsize >= bytes) && (files === 0 || ffree >= MIN_FILES);
  } catch {
    // The folder is gone, or the system does not report it: the write itself will fail with the reason.
    return true;
  }
}

/** Resolves when there is room, or when the signal aborts. */
export async function whenRoom(folder: string, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && !hasRoom(folder)) await sleep(POLL_MS, undefined, { ref: false });
}

/** How Node, SQLite, git and the Copilot runtime each report a full disk. */
const FULL = /ENOSPC|EDQUOT|no space left on device|disk quota exceeded|out of diskspace|database or disk is full|os error 28\b/i;

/** Whether a program's output says that the disk is full. */
export const saysFull = (text: string): boolean => FULL.test(text);

/** Wraps any failure caused by a full disk into an error with Node's own code for it. */
export function diskFull(message: string): Error {
  return Object.assign(new Error(message), { code: "ENOSPC" });
}
