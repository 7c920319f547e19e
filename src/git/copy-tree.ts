import {
  chmodSync,
  chownSync,
  closeSync,
  mkdirSync,
  openSync,
  readlinkSync,
  readSync,
  type Stats,
  statfsSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { type Breath, createBreath } from "../lib/breath.ts";
import { codeOf, messageOf, UserError } from "../lib/errors.ts";
import { type Folder, openFolder } from "../lib/pinned/folder.ts";
import { eachEntryOf, statsOf } from "../lib/pinned/list.ts";
import { openPlain } from "../lib/pinned/read.ts";
import { statsAt } from "../lib/stats-at.ts";
import { exec } from "../process/exec.ts";
import { removeTree } from "../process/remove-tree.ts";

export interface CopyOptions {
  /** Whether hard links are allowed. */
  share: boolean;
  signal: AbortSignal;
}

/** How often `cp` is tried before a constantly changing tree is copied the slow way. */
const FAST_TRIES = 2;
/** The kernel's file timestamps are at most one tick behind our clock. */
const TICK_MS = 20;
/** NFS, CIFS, SMB2, FUSE and 9p: timestamps may come from another machine's clock. */
const OTHER_CLOCKS = new Set([0x6969, 0xff534d42, 0xfe534d42, 0x65735546, 0x01021997]);
const ENVIRONMENT = { PATH: "/usr/bin:/bin", LC_ALL: "C" };

/**
 * Copies an entry of an open folder. `cp` walks by path, so a folder swapped for a link could lead it out of the tree: its copy
 * counts only if no folder of the tree changed meanwhile.
 */
export async function copyTree(source: Folder, name: string, made: string, { share, signal }: CopyOptions): Promise<void> {
  const failed = (why: string) =>
    new UserError(
      `${join(source.path, name)} could not be copied for the run: ${why}. Mend that (is the disk full?), then resume.`,
    );
  const isChecked = process.platform !== "linux" || !OTHER_CLOCKS.has(statfsSync(source.self).type);
  for (let tries = 0; isChecked && tries < FAST_TRIES; tries += 1) {
    const begunAt = Date.now() - TICK_MS;
    const trouble = await copyFast(source, name, made, { share, signal });
    if (!(await wasChanged(source, name, begunAt, signal))) {
      if (trouble === undefined) return;
      throw failed(trouble);
    }
    await removeTree(made);
  }
  try {
    await copyHeld(source, name, made, createBreath(signal));
  } catch (error) {
    throw codeOf(error) === undefined ? error : failed(messageOf(error));
  }
}

/** Errors of `cp` about parts that are inaccessible or need root. It has copied the rest. */
const isLeftOut = (line: string): boolean =>
  /: (?:Permission denied|Operation not permitted)$/.test(line) &&
  /for reading: |cannot (?:access|stat|read|create special file) /.test(line);

/** Uses the system's `cp`, which is several times faster than Node; returns its errors. The first working variant is used. */
async function copyFast(source: Folder, name: string, made: string, { share, signal }: CopyOptions): Promise<string | undefined> {
  const plain = process.platform === "darwin" ? [["-Rcp"], ["-Rp"]] : [["-a", "--reflink=auto"], ["-a"]];
  let said = "";
  for (const options of [...(share && process.platform !== "darwin" ? [["-al"]] : []), ...plain]) {
    // The folder is entered through its handle, wherever its path leads now.
    const { code, stderr } = await exec("/bin/cp", [...options, "--", `./${name}`, made], {
      ...{ cwd: `${source.self}/`, env: ENVIRONMENT, signal },
    });
    signal.throwIfAborted();
    if (code === 0) return undefined;
    const lines = stderr.trim().split("\n");
    if (statsAt(made) && lines.every((line) => isLeftOut(line))) return undefined;
    said = stderr.trim().slice(-300);
    await removeTree(made);
  }
  return said;
}

/** Lists every folder, then reads their times, parents after children, so that no change can hide from both. */
const LAST_CHANGES = 'find "$1" -depth -type d -print0 | xargs -0 -r stat -c %.9Z --';

/** Whether any folder of a tree changed since then. Swapping a folder changes its parent. */
async function wasChanged(source: Folder, name: string, since: number, signal: AbortSignal): Promise<boolean> {
  // Other systems have neither these programs nor a sandbox that such a swap could bypass.
  if (process.platform !== "linux") return false;
  const { code, stdout } = await exec("/bin/sh", ["-c", LAST_CHANGES, "sh", `./${name}`], {
    ...{ cwd: `${source.self}/`, env: ENVIRONMENT, signal, maxOutput: 100_000_000 },
  });
  signal.throwIfAborted();
  const times = stdout.split("\n").filter((line) => line !== "");
  return code !== 0 || !times.every((line) => Number(line) * 1_000 < since);
}

/** Copies by handles alone: anything that has become a link, or is gone, is skipped. */
async function copyHeld(source: Folder, name: string, made: string, breathe: Breath): Promise<void> {
  const stats = statsOf(source, name);
  try {
    if (stats?.isSymbolicLink()) symlinkSync(readlinkSync(source.entry(name)), made);
    else if (stats?.isFile()) await copyFile(source, name, made, breathe);
    else if (stats?.isDirectory()) await copyFolder(source, name, made, breathe);
  } catch (error) {
    // Swapped or removed at this moment, or inaccessible.
    if (!["ENOENT", "EINVAL", "ELOOP", "ENOTDIR", "EACCES", "EPERM"].includes(codeOf(error) ?? "")) throw error;
  }
}

async function copyFolder(source: Folder, name: string, made: string, breathe: Breath): Promise<void> {
  const folder = openFolder(join(source.path, name));
  try {
    const stats = statSync(`${folder.self}/.`);
    mkdirSync(made, { mode: 0o700 });
    for await (const entry of eachEntryOf(folder, breathe)) await copyHeld(folder, entry.name, join(made, entry.name), breathe);
    keep(made, stats);
  } finally {
    folder.close();
  }
}

const CHUNK = 1_000_000;

async function copyFile(source: Folder, name: string, made: string, breathe: Breath): Promise<void> {
  const opened = openPlain(source, name);
  if ("absent" in opened) return;
  const { handle, stats } = opened;
  try {
    const target = openSync(made, "wx", 0o600);
    try {
      const buffer = Buffer.allocUnsafe(Math.min(CHUNK, stats.size + 1));
      for (let read = readSync(handle, buffer); read > 0; read = readSync(handle, buffer)) {
        for (let written = 0; written < read; ) written += writeSync(target, buffer, written, read - written);
        await breathe();
      }
    } finally {
      closeSync(target);
    }
    keep(made, stats);
  } finally {
    closeSync(handle);
  }
}

/** The copy is in a folder of ours, where nobody swaps anything. */
function keep(made: string, { mode, uid, gid, atime, mtime }: Stats): void {
  if (process.getuid?.() === 0) chownSync(made, uid, gid);
  chmodSync(made, mode & 0o7777);
  utimesSync(made, atime, mtime);
}
