import { createHash } from "node:crypto";
import {
  closeSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  rmSync,
  type Stats,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { codeOf, UserError } from "../lib/errors.ts";
import { withPath } from "../lib/file-errors.ts";
import { type Folder, withFolder } from "../lib/pinned/folder.ts";
import { openPlain, tellAbsent } from "../lib/pinned/read.ts";
import { isLeftOut } from "./manifest.ts";
import type { OnProgress } from "./progress.ts";
import type { TarEntry } from "./tar.ts";

/** An entry of the copy, with the hash of its content. */
export interface Copied extends TarEntry {
  sha256: string;
}

export interface CopyDeps {
  home: string;
  staging: string;
  onProgress?: OnProgress | undefined;
}

/** A copy of a home's files that each pass updates: only files changed since the last pass are read again. */
export function createCopy({ home, staging, onProgress }: CopyDeps) {
  const copied = new Map<string, { stamp: string; entry: Copied }>();
  const buffer = Buffer.alloc(256 * 1024);
  let bytes = 0;

  function take(folder: Folder, path: string, name: string, stats: Stats): void {
    const stamp = [stats.ino, stats.size, stats.mtimeMs, stats.ctimeMs, stats.mode].join(":");
    if (copied.get(path)?.stamp === stamp) return;
    const base = { name: path, mode: stats.mode & 0o777, mtimeMs: stats.mtimeMs };
    if (stats.isSymbolicLink()) {
      const target = readlinkSync(folder.entry(name));
      copied.set(path, { stamp, entry: { ...base, type: "link", size: 0, target, sha256: digest(target) } });
      return;
    }
    const opened = openPlain(folder, name);
    if ("absent" in opened) {
      // It was removed or replaced since it was listed.
      if (opened.absent !== "not permitted") return void copied.delete(path);
      throw new UserError(`${join(home, path)} ${tellAbsent(opened.absent)}. Check its owner and mode; nothing was backed up.`);
    }
    const { size, sha256 } = write(opened.handle, join(staging, path));
    copied.set(path, { stamp, entry: { ...base, type: "file", size, sha256 } });
  }

  function write(handle: number, target: string): { size: number; sha256: string } {
    mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
    const file = openSync(target, "w", 0o600);
    const hash = createHash("sha256");
    let size = 0;
    try {
      for (let read = readSync(handle, buffer); read > 0; read = readSync(handle, buffer)) {
        const part = buffer.subarray(0, read);
        hash.update(part);
        for (let at = 0; at < read; ) at += writeSync(file, part, at);
        size += read;
        bytes += read;
        onProgress?.({ step: "copying", files: copied.size, bytes });
      }
    } catch (error) {
      // A person needs to know which of two disks is full.
      throw withPath(error, target);
    } finally {
      closeSync(file);
      closeSync(handle);
    }
    return { size, sha256: hash.digest("hex") };
  }

  function walk(relative: string, seen: Set<string>): void {
    withFolder(relative === "" ? home : join(home, relative), (folder) => {
      const names = readdirSync(folder.self).sort();
      for (const name of names) {
        const path = relative === "" ? name : `${relative}/${name}`;
        const stats = isLeftOut(path) ? undefined : lstatSync(folder.entry(name), { throwIfNoEntry: false });
        if (stats?.isDirectory()) inside(() => walk(path, seen));
        else if (stats?.isFile() || stats?.isSymbolicLink()) {
          take(folder, path, name, stats);
          seen.add(path);
        }
      }
      if (names.length === 0 && relative !== "") {
        const entry: Copied = { name: relative, type: "folder", mode: 0o700, mtimeMs: Date.now(), size: 0, sha256: digest("") };
        copied.set(relative, { stamp: "", entry });
        seen.add(relative);
      }
    });
  }

  return {
    pass(): void {
      const seen = new Set<string>();
      walk("", seen);
      for (const path of copied.keys())
        if (!seen.has(path)) {
          copied.delete(path);
          rmSync(join(staging, path), { recursive: true, force: true });
        }
    },
    entries: (): Copied[] => [...copied.values()].map(({ entry }) => entry),
  };
}

/** A folder that is removed while it is scanned counts as empty. */
function inside(work: () => void): void {
  try {
    work();
  } catch (error) {
    if (!["ENOENT", "ENOTDIR", "ELOOP"].includes(codeOf(error) ?? "")) throw error;
  }
}

export function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
