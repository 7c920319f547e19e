import { readlinkSync } from "node:fs";
import { dirname, isAbsolute, join, normalize } from "node:path";
import { type Folder, openFolder } from "../lib/pinned/folder.ts";
import { type OpenFile, openPlain, readPlain } from "../lib/pinned/read.ts";

/** The files of a project, each opened from its folder, without following links. */
export interface ProjectTree {
  /** Opens a file for reading; the caller closes it. */
  open(file: string): OpenFile;
  /** The text of a small file, or undefined if it is not a readable regular file of at most `limit` bytes. */
  text(file: string, limit?: number): string | undefined;
  /** The file of the project that a link's own text leads to; undefined if it is no link or leads elsewhere. */
  linked(file: string): string | undefined;
  close(): void;
}

/** Opens a project by its real path. The last file's folder is kept open, because files come folder by folder. */
export function openTree(root: string): ProjectTree {
  let held: { below: string; folder: Folder | undefined } | undefined;
  const folderOf = (below: string): Folder | undefined => {
    if (held?.below === below) return held.folder;
    held?.folder?.close();
    held = { below, folder: folderAt(join(root, below)) };
    return held.folder;
  };
  const parted = (file: string) => {
    const cut = file.lastIndexOf("/") + 1;
    return { folder: folderOf(file.slice(0, cut)), name: file.slice(cut) };
  };
  return {
    open(file) {
      const { folder, name } = parted(file);
      return folder ? openPlain(folder, name, { isListed: true }) : { absent: "missing" };
    },
    text(file, limit = 1_000_000) {
      const { folder, name } = parted(file);
      const read = folder && readPlain(folder, name, limit);
      return read && "bytes" in read ? read.bytes.toString("utf8").replace(/^\uFEFF/, "") : undefined;
    },
    linked(file) {
      const target = linkAt(join(root, file));
      if (target === undefined || isAbsolute(target)) return undefined;
      const inside = normalize(join(dirname(file), target));
      return inside === ".." || inside.startsWith("../") ? undefined : inside;
    },
    close() {
      held?.folder?.close();
      held = undefined;
    },
  };
}

function linkAt(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    // No link, or one that we may not read.
    return undefined;
  }
}

function folderAt(path: string): Folder | undefined {
  try {
    return openFolder(path.replace(/(?<=.)\/$/, ""));
  } catch {
    // Gone, replaced by a link, or unreadable: it has no files for us.
    return undefined;
  }
}
