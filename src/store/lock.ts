import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { isBusy } from "./faults.ts";

/** Takes a lock that the system releases when this process ends, however it ends. Undefined if somebody else holds it. */
export function takeLock(path: string): { release(): void } | undefined {
  const db = new DatabaseSync(path);
  try {
    // Somebody who only queries the holder is done within this time.
    db.exec("PRAGMA busy_timeout = 250; BEGIN EXCLUSIVE");
    return { release: () => db.close() };
  } catch (error) {
    db.close();
    if (isBusy(error)) return undefined;
    throw error;
  }
}

/** The lock's holder; undefined if nobody. Without a pid if the system does not report it. */
export function lockHolder(path: string): { pid?: number } | undefined {
  if (!existsSync(path)) return undefined;
  let db: InstanceType<typeof DatabaseSync> | undefined;
  try {
    db = new DatabaseSync(path, { readOnly: true });
    db.exec("PRAGMA busy_timeout = 0; SELECT count(*) FROM sqlite_master");
    return undefined;
  } catch (error) {
    // Nobody holds a file that is not a lock or cannot be opened.
    return isBusy(error) ? pidOnLinux(path) : undefined;
  } finally {
    db?.close();
  }
}

/** Linux lists every lock with the pid of its holder, the device and the inode number of the file. */
function pidOnLinux(path: string): { pid?: number } {
  try {
    const file = statSync(path);
    const pid = pickHolder(readFileSync("/proc/locks", "utf8"), file, (candidate) => hasOpen(candidate, file));
    return pid === undefined ? {} : { pid };
  } catch {
    // Not Linux, or /proc is hidden.
    return {};
  }
}

/** A file's device and inode, from `stat`. */
export interface FileNumber {
  dev: number;
  ino: number;
}

/**
 * Finds the holder of a file's write lock in the text of `/proc/locks`. Inode numbers repeat across devices, and on overlay and
 * btrfs the list shows another device than `stat`: then the process must have exactly this file open.
 */
export function pickHolder(
  locks: string,
  { dev, ino }: FileNumber,
  /** Undefined if the process cannot be examined. */
  isOpenIn: (pid: number) => boolean | undefined,
): number | undefined {
  const candidates = locks.split("\n").flatMap((line) => {
    const [, pid, major, minor, inode] = LOCK_LINE.exec(line) ?? [];
    if (Number(inode) !== ino || Number(pid) <= 0) return [];
    return [{ pid: Number(pid), sameDevice: `${major}:${minor}` === deviceName(dev) }];
  });
  const exact = candidates.find(({ sameDevice }) => sameDevice);
  if (exact && isOpenIn(exact.pid) !== false) return exact.pid;
  return candidates.find(({ pid }) => isOpenIn(pid))?.pid;
}

/** Parses a held lock; a waiting one has an arrow before its kind. */
const LOCK_LINE = /^\d+: [A-Z]+ +\S+ +WRITE +(-?\d+) ([0-9a-f]+):([0-9a-f]+):(\d+) /;

/** The device in the format of `/proc/locks`; uses glibc's packing of major and minor. */
function deviceName(dev: number): string {
  const device = BigInt(dev);
  const major = ((device >> 8n) & 0xfffn) | ((device >> 32n) & ~0xfffn);
  const minor = (device & 0xffn) | ((device >> 12n) & ~0xffn);
  return [major, minor].map((part) => part.toString(16).padStart(2, "0")).join(":");
}

const MOST_OPEN_FILES = 4_096;

function hasOpen(pid: number, { dev, ino }: FileNumber): boolean | undefined {
  const folder = `/proc/${pid}/fd`;
  let names: string[];
  try {
    names = readdirSync(folder);
  } catch {
    // It has ended, or belongs to another user.
    return undefined;
  }
  return names.slice(0, MOST_OPEN_FILES).some((name) => {
    const file = statSync(join(folder, name), { throwIfNoEntry: false });
    return file?.ino === ino && file.dev === dev;
  });
}
