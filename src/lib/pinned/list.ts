import { type BigIntStats, type Dirent, lstatSync, readdirSync } from "node:fs";
import { codeOf } from "../errors.ts";
import { type Folder, named, withFolder } from "./folder.ts";

/** The entries of a folder, links not followed. */
export function entriesOf(folder: Folder): Dirent[] {
  return named(folder, () => {
    const entries = readdirSync(folder.self === folder.path ? folder.path : `${folder.self}/.`, { withFileTypes: true });
    folder.check();
    return entries;
  });
}

/** The entries of a folder by its real path; none if there is no such folder, a link is in the way, or it is kept from us. */
export function entriesAt(path: string): Dirent[] {
  try {
    return withFolder(path, entriesOf);
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "ELOOP", "EACCES", "EPERM"].includes(codeOf(error) ?? "")) return [];
    throw error;
  }
}

/** What an entry is, a link not followed; undefined if there is none. */
export function statsOf(folder: Folder, name: string): BigIntStats | undefined {
  return named(folder, () => lstatSync(folder.entry(name), { bigint: true, throwIfNoEntry: false }));
}
