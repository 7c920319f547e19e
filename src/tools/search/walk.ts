import { closeSync, type Dirent, fstatSync, lstatSync, readSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { codeOf } from "../../lib/errors.ts";
import { type Folder, openFolder } from "../../lib/pinned/folder.ts";
import { entriesOf } from "../../lib/pinned/list.ts";
import { openListed, readPlain } from "../../lib/pinned/read.ts";
import type { PathGuard } from "../guard.ts";
import { type IgnoreRules, isIgnored, withRules } from "./ignore-rules.ts";

/** How many entries a walk left out, and why. */
export interface LeftOut {
  ignored: number;
  unreadable: number;
}

/** An entry as the walk meets it; its folder stays open meanwhile. */
export interface Met {
  folder: Folder;
  name: string;
  /** The parts of its path below the root; copy them to keep them. */
  parts: readonly string[];
  kind: "file" | "folder" | "link";
}

export interface Walked {
  left: LeftOut;
  ending: "done" | "stopped" | "late";
}

export interface WalkDeps {
  /** The real path of a folder. */
  root: string;
  /** Visits an entry; a result ends the walk. */
  visit: (met: Met) => "stopped" | "late" | undefined;
  isLate: () => boolean;
  /** Which of several parallel walks this is; it visits only its share of the entries. */
  share: number;
  shares: number;
}

/** A folder that has not been walked yet. */
interface Ahead {
  path: string;
  /** The parts of its path below the repository's top, or below the root if that is not in a repository. */
  names: readonly string[];
  rules: IgnoreRules | undefined;
}

/** This many folders can be divided evenly enough. */
const ENOUGH = 16;
/** How many entries to visit between two checks of the time. */
const BETWEEN = 64;

const IGNORE_FILE = ".gitignore";
const MOST_RULES = 1_000_000;
/** A NUL among this many bytes at the beginning makes a file binary. */
const LOOKED_AT = 8_000;
/** Never entered, whatever ignore files say: git's own records, installed packages, and folders without real files. */
const GIT = ".git";
const PACKAGES = "node_modules";
const NO_FILES = new Set(["/proc", "/sys", "/dev"]);

/**
 * Visits every file, folder and link below a folder in the order of names, without following links and without ignored entries.
 * Each folder is opened by its real path and kept open, so one that is swapped for a link meanwhile leads nowhere.
 */
export function walkFolder({ root, visit, isLate, share, shares }: WalkDeps): Walked {
  const left: LeftOut = { ignored: 0, unreadable: 0 };
  let ending: Walked["ending"] = "done";
  let met = 0;
  const start = rulesAbove(root);
  const depth = start.names.length;
  const isMine = (names: readonly string[]) => shareOf(names, shares) === share;

  /** Visits the entries of a folder and passes its subfolders on. */
  function enter({ path, names: own, rules: above }: Ahead, isOwn: Own, goOn: (folder: Ahead) => void): void {
    let folder: Folder | undefined;
    const names = [...own];
    try {
      folder = openFolder(path);
      const entries = entriesOf(folder).sort((a, b) => (a.name < b.name ? -1 : 1));
      const rules = entries.some(({ name }) => name === IGNORE_FILE) ? rulesIn(folder, own.length, above) : above;
      for (const entry of entries) {
        if (ending !== "done") return;
        names[own.length] = entry.name;
        if (meet(folder, entry, names, rules, isOwn)) goOn({ path: join(path, entry.name), names: [...names], rules });
      }
    } catch (error) {
      if (codeOf(error) === undefined || own.length === depth) throw error;
      if (isOwn(own)) left.unreadable += 1;
    } finally {
      folder?.close();
    }
  }

  /** Visits an entry, and returns whether it is a folder to walk. */
  function meet(folder: Folder, entry: Dirent, names: readonly string[], rules: IgnoreRules | undefined, isOwn: Own): boolean {
    const { name } = entry;
    const isFolder = entry.isDirectory();
    if (!isFolder && !entry.isFile() && !entry.isSymbolicLink()) return false;
    if (name === GIT || (folder.path === "/" && isFolder && NO_FILES.has(`/${name}`))) return false;
    if ((isFolder && name === PACKAGES) || isIgnored(rules, names, isFolder)) {
      if (isOwn(names)) left.ignored += 1;
      return false;
    }
    met += 1;
    if (met % BETWEEN === 0 && isLate()) ending = "late";
    else if (isOwn(names)) {
      const kind = isFolder ? "folder" : entry.isFile() ? "file" : "link";
      ending = visit({ folder, name, parts: depth === 0 ? names : names.slice(depth), kind }) ?? "done";
    }
    return isFolder && ending === "done";
  }

  const deeper = (folder: Ahead): void => enter(folder, all, deeper);
  // All walks enter the first folders, each for its own entries, until there are enough to divide.
  let ahead: Ahead[] = [{ path: root, ...start }];
  while (shares > 1 && ahead.length > 0 && ahead.length < ENOUGH && ending === "done") {
    const next: Ahead[] = [];
    for (const folder of ahead) enter(folder, isMine, (each) => next.push(each));
    ahead = next;
  }
  for (const folder of ahead) if (ending === "done" && (shares === 1 || isMine(folder.names))) deeper(folder);
  return { left, ending };
}

type Own = (names: readonly string[]) => boolean;
const all: Own = () => true;

function shareOf(names: readonly string[], shares: number): number {
  let sum = 0;
  for (const name of names) for (let at = 0; at < name.length; at += 1) sum = (sum * 31 + name.charCodeAt(at)) >>> 0;
  return sum % shares;
}

/** The ignore rules between a folder and its repository; none if the folder itself is ignored, since it was asked for. */
function rulesAbove(root: string): { names: string[]; rules: IgnoreRules | undefined } {
  const top = repositoryOf(root);
  const names = top === undefined || top === root ? [] : relative(top, root).split(sep);
  let rules: IgnoreRules | undefined;
  for (const [at, name] of names.entries()) {
    try {
      const folder = openFolder(join(top!, ...names.slice(0, at)));
      rules = rulesIn(folder, at, rules);
      folder.close();
    } catch (error) {
      if (codeOf(error) === undefined) throw error;
      // A folder that cannot be opened adds no rules.
    }
    if (name === PACKAGES || isIgnored(rules, names.slice(0, at + 1), true)) return { names, rules: undefined };
  }
  return { names, rules };
}

function repositoryOf(folder: string): string | undefined {
  for (let at = folder; ; at = dirname(at)) {
    if (lstatSync(join(at, ".git"), { throwIfNoEntry: false })) return at;
    if (dirname(at) === at) return undefined;
  }
}

function rulesIn(folder: Folder, depth: number, above: IgnoreRules | undefined): IgnoreRules | undefined {
  const read = readPlain(folder, IGNORE_FILE, MOST_RULES);
  return "bytes" in read ? withRules(above, depth, read.bytes.toString("utf8")) : above;
}

export type Content = { bytes: Buffer } | { why: "binary" | "large" | "unreadable" | "secret" };

/** Reads the files that a walk meets, each into the same memory. Files that the guard protects are not returned. */
export function createReader(guard: PathGuard, most: number) {
  let memory = Buffer.allocUnsafe(1 << 18);

  /** A file may grow while it is read; what no longer fits is left out. */
  const read = (handle: number): Content => {
    let length = readSync(handle, memory, 0, memory.length, null);
    // Most files end here, so their size need not be looked up.
    if (length === memory.length) {
      const { size } = fstatSync(handle);
      if (size > most) return { why: "large" };
      if (size > memory.length) memory = Buffer.concat([memory], size);
      for (let got = length; got > 0 && length < size; length += got) {
        got = readSync(handle, memory, length, size - length, null);
      }
    }
    const bytes = memory.subarray(0, length);
    return bytes.subarray(0, LOOKED_AT).includes(0) ? { why: "binary" } : { bytes };
  };

  /** The bytes of a file if `isWanted` accepts them; they are valid until the next file is read. */
  return ({ folder, name }: Pick<Met, "folder" | "name">, isWanted: (bytes: Buffer) => boolean): Content | undefined => {
    const opened = openListed(folder, name);
    if ("absent" in opened) return { why: "unreadable" };
    const { handle } = opened;
    try {
      const content = read(handle);
      if (!("bytes" in content)) return content;
      if (!isWanted(content.bytes)) return undefined;
      const stats = fstatSync(handle);
      if (!stats.isFile()) return { why: "unreadable" };
      const isClosed = guard.isSecretFile(stats) || guard.refuse(join(folder.path, name), "read", folder.path) !== undefined;
      return isClosed ? { why: "secret" } : content;
    } catch (error) {
      if (codeOf(error) === undefined) throw error;
      return { why: "unreadable" };
    } finally {
      closeSync(handle);
    }
  };
}
