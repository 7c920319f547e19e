import { linkSync, lstatSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { codeOf, missing } from "../lib/errors.ts";
import { type Folder, makeFolder, named, openFolder } from "../lib/pinned/folder.ts";
import { entriesAt, statsOf } from "../lib/pinned/list.ts";
import { readPlain, readPlainAt } from "../lib/pinned/read.ts";
import { createFile, removeFile, replaceFile } from "../lib/pinned/write.ts";
import { type IsSecret, MAX_PAGE_BYTES, type Stamp, stampOf } from "./page-file.ts";

export interface Version {
  /** Names this version of its page. */
  version: string;
  /** When this text was written. */
  savedAt: string;
  bytes: number;
}

/** Earlier texts of pages. */
export interface Versions {
  /** Keeps the text a page's file holds now, before it is replaced or removed. Keeping it twice keeps it once. */
  keep(path: string, file: string): void;
  /** Keeps a copy of the text itself, so that it outlives an editor that writes into the file in place. */
  keepCopy(path: string, stamp: Stamp, text: string): void;
  /** Earlier versions, newest first; the text the page holds now is not among them. */
  list(path: string, file: string): Version[];
  read(path: string, version: string): string;
}

/** So many earlier versions of a page are kept. */
export const VERSIONS_KEPT = 50;
const NAME = /^(\d{8})T(\d{6})\.(\d{6})Z-[0-9a-z]+$/;

/**
 * A version is named by its file's time and inode, so keeping it before an overwrite is one hard link and no copy:
 * the old file lives on under its new name while the new one is renamed into its place.
 */
export function createVersions(folder: string, isSecret: IsSecret): Versions {
  const placeOf = (path: string) => join(folder, path.slice("pages/".length));
  const names = (path: string) =>
    entriesAt(placeOf(path))
      .filter((entry) => entry.isFile() && NAME.test(entry.name))
      .map(({ name }) => name);
  const prune = (place: Folder, path: string, now: string) => {
    const old = names(path)
      .filter((name) => name !== now)
      .sort()
      .slice(0, -VERSIONS_KEPT);
    for (const name of old) removeFile(place, name);
  };
  const within = (path: string, work: (place: Folder) => void) => {
    const place = makeFolder(placeOf(path));
    try {
      named(place, () => work(place));
    } finally {
      place.close();
    }
  };

  return {
    keep(path, file) {
      const stamp = stampOf(file);
      if (stamp === undefined) return;
      const pages = openFolder(dirname(file));
      try {
        within(path, (place) => keepOne({ pages, name: basename(file), place, stamp, isSecret }));
      } finally {
        pages.close();
      }
    },
    keepCopy(path, stamp, text) {
      const name = nameOf(stamp);
      within(path, (place) => {
        if (statsOf(place, name) === undefined) replaceFile(place, name, text, { durable: false });
        prune(place, path, name);
      });
    },
    list(path, file) {
      const current = stampOf(file);
      return names(path)
        .filter((name) => current === undefined || name !== nameOf(current))
        .sort()
        .reverse()
        .slice(0, VERSIONS_KEPT)
        .map((name) => ({ version: name, savedAt: timeOf(name), bytes: Number(stampOf(join(placeOf(path), name))?.size ?? 0) }));
    },
    read(path, version) {
      const read = NAME.test(version) ? readPlainAt(join(placeOf(path), version), MAX_PAGE_BYTES) : undefined;
      if (read && "bytes" in read) return read.bytes.toString("utf8");
      throw missing(`${path} has no version "${version.slice(0, 60)}". Its history lists the ones there are.`);
    },
  };
}

interface Keeping {
  pages: Folder;
  name: string;
  place: Folder;
  stamp: Stamp;
  isSecret: IsSecret;
}

/** Gives the page's file a further name among the versions, or copies it where a link will not do. */
function keepOne({ pages, name, place, stamp, isSecret }: Keeping): void {
  const target = nameOf(stamp);
  const kept = statsOf(place, target);
  // A copy that a power cut cut short is not this text: it makes way.
  if (kept?.isFile() && kept.size === stamp.size) return;
  if (kept) removeFile(place, target);
  // A file with another name somewhere could be written under that one, so its text is copied.
  if (stamp.nlink === 1n && linked(pages.entry(name), place.entry(target))) {
    if (lstatSync(place.entry(target), { bigint: true }).ino !== stamp.ino) removeFile(place, target);
    return;
  }
  const read = readPlain(pages, name, MAX_PAGE_BYTES);
  if ("absent" in read || (read.stats.nlink > 1n && isSecret(read.stats.ino))) return;
  createFile(place, target, read.bytes, { durable: false });
}

/** False on a disk that has no hard links. */
function linked(from: string, to: string): boolean {
  try {
    linkSync(from, to);
    return true;
  } catch (error) {
    // Another process was quicker to keep the same.
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
