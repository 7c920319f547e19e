import { type BigIntStats, type Dirent, lstatSync, opendirSync, readdirSync } from "node:fs";
import { type Breath, createBreath } from "../breath.ts";
import { codeOf } from "../errors.ts";
import { type Folder, named, withFolder } from "./folder.ts";

/** The entries of a folder; links are not followed. */
export function entriesOf(folder: Folder): Dirent[] {
  return named(folder, () => {
    const entries = readdirSync(folder.self === folder.path ? folder.path : `${folder.self}/.`, { withFileTypes: true });
    folder.check();
    return entries;
  });
}

/** Yields the entries one by one, unordered, so that a folder of any size does not block the event loop. */
export async function* eachEntryOf(folder: Folder, breathe: Breath = createBreath()): AsyncGenerator<Dirent> {
  const listing = named(folder, () =>
    opendirSync(folder.self === folder.path ? folder.path : `${folder.self}/.`, { bufferSize: 256 }),
  );
  try {
    for (let entry = listing.readSync(); entry !== null; entry = listing.readSync()) {
      yield entry;
      await breathe();
    }
    folder.check();
  } finally {
    listing.closeSync();
  }
}

/** The entries of a folder by its real path; empty if it is missing, unreadable, or reached through a link. */
export function entriesAt(path: string): Dirent[] {
  try {
    return withFolder(path, entriesOf);
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "ELOOP", "EACCES", "EPERM"].includes(codeOf(error) ?? "")) return [];
    throw error;
  }
}

/** The type of an entry, without following a link; undefined if it does not exist. */
export function statsOf(folder: Folder, name: string): BigIntStats | undefined {
  return named(folder, () => lstatSync(folder.entry(name), { bigint: true, throwIfNoEntry: false }));
}
