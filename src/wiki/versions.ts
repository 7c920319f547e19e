import { linkSync, lstatSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { codeOf, missing } from "../lib/errors.ts";
import { type Folder, makeFolder, named, openFolder } from "../lib/pinned/folder.ts";
import { entriesAt, statsOf } from "../lib/pinned/list.ts";
import { readPlain, readPlainAt } from "../lib/pinned/read.ts";
import { createFile, removeFile, replaceFile } from "../lib/pinned/write.ts";
import { type IsSecret, MAX_PAGE_BYTES, type Stamp, stampOf } from "./page-file.ts";

export interface Version {
  version: string;
  /** When the text was written. */
  savedAt: string;
  bytes: number;
}

/** Earlier versions of pages. */
export interface Versions {
  /** Keeps a page's current text before it is replaced or removed. Idempotent. */
  keep(path: string, file: string): void;
  /** Keeps a copy of the text, so that it survives an editor that writes the file in folder. */
  keepCopy(path: string, stamp: Stamp, text: string): void;
  /** Earlier versions, newest first, without the current text. */
  list(path: string, file: string): Version[];
  read(path: string, version: string): string;
}

/** How many earlier versions of a page are kept. */
export const VERSIONS_KEPT = 50;
const NAME = /^(\d{8})T(\d{6})\.(\d{6})Z-[0-9a-z]+$/;

/**
 * A version's name consists of its file's time and inode. Keeping one before an overwrite takes a hard link, not a copy: the
 * old file stays under that name while the new one is renamed over the page.
 */
export function createVersions(root: string, isSecret: IsSecret): Versions {
  const folderOf = (path: string) => join(root, path.slice("pages/".length));
  const names = (path: string) =>
    entriesAt(folderOf(path))
      .filter((entry) => entry.isFile() && NAME.test(entry.name))
      .map(({ name }) => name);
  const prune = (folder: Folder, path: string, now: string) => {
    const old = names(path)
      .filter((name) => name !== now)
      .sort()
      .slice(0, -VERSIONS_KEPT);
    for (const name of old) removeFile(folder, name);
  };
  const within = (path: string, work: (folder: Folder) => void) => {
    const folder = makeFolder(folderOf(path));
    try {
      named(folder, () => work(folder));
    } finally {
      folder.close();
    }
  };

  return {
    keep(path, file) {
      const stamp = stampOf(file);
      if (stamp === undefined) return;
      const pages = openFolder(dirname(file));
      try {
        within(path, (folder) => linkOrCopy({ pages, name: basename(file), folder, stamp, isSecret }));
      } finally {
        pages.close();
      }
    },
    keepCopy(path, stamp, text) {
      const name = nameOf(stamp);
      within(path, (folder) => {
        if (statsOf(folder, name) === undefined) replaceFile(folder, name, text, { durable: false });
        prune(folder, path, name);
      });
    },
    list(path, file) {
      const current = stampOf(file);
      return names(path)
        .filter((name) => current === undefined || name !== nameOf(current))
        .sort()
        .reverse()
        .slice(0, VERSIONS_KEPT)
        .map((name) => ({ version: name, savedAt: timeOf(name), bytes: Number(stampOf(join(folderOf(path), name))?.size ?? 0) }));
    },
    read(path, version) {
      const read = NAME.test(version) ? readPlainAt(join(folderOf(path), version), MAX_PAGE_BYTES) : undefined;
      if (read && "bytes" in read) return read.bytes.toString("utf8");
      throw missing(`${path} has no version "${version.slice(0, 60)}". Its history lists the ones there are.`);
    },
  };
}

interface Keeping {
  pages: Folder;
  name: string;
  folder: Folder;
  stamp: Stamp;
  isSecret: IsSecret;
}

/** Hard-links the page's file into the versions folder, or copies it if a link will not do. */
function linkOrCopy({ pages, name, folder, stamp, isSecret }: Keeping): void {
  const target = nameOf(stamp);
  const kept = statsOf(folder, target);
  // Replace a copy that a power cut truncated.
  if (kept?.isFile() && kept.size === stamp.size) return;
  if (kept) removeFile(folder, target);
  // A file with another hard link could be changed through it, so copy the text.
  if (stamp.nlink === 1n && tryLink(pages.entry(name), folder.entry(target))) {
    if (lstatSync(folder.entry(target), { bigint: true }).ino !== stamp.ino) removeFile(folder, target);
    return;
  }
  const read = readPlain(pages, name, MAX_PAGE_BYTES);
  if ("absent" in read || (read.stats.nlink > 1n && isSecret(read.stats.ino))) return;
  createFile(folder, target, read.bytes, { durable: false });
}

/** False if the disk does not support hard links. */
function tryLink(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    // Another process kept the same version first.
    if (codeOf(error) === "EEXIST") return true;
    if (["EPERM", "ENOTSUP", "EOPNOTSUPP", "EXDEV", "EMLINK", "ENOSYS"].includes(codeOf(error) ?? "")) return false;
    throw error;
  }
}

function nameOf({ mtimeNs, ino }: Stamp): string {
  const micros = mtimeNs / 1000n;
  const time = new Date(Number(micros / 1000n)).toISOString().replace(/[-:]/g, "");
  return `${time.slice(0, 15)}.${String(micros % 1_000_000n).padStart(6, "0")}Z-${ino.toString(36)}`;
}

function timeOf(name: string): string {
  const [, day = "", time = "", micros = ""] = NAME.exec(name) ?? [];
  return `${day.slice(0, 4)}-${day.slice(4, 6)}-${day.slice(6)}T${time.slice(0, 2)}:${time.slice(2, 4)}:${time.slice(4)}.${micros.slice(0, 3)}Z`;
}
