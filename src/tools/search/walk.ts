import { closeSync, type Dirent, lstatSync, readSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { codeOf } from "../../lib/errors.ts";
import { type Folder, openFolder } from "../../lib/pinned/folder.ts";
import { entriesOf } from "../../lib/pinned/list.ts";
import { openPlain, readPlain } from "../../lib/pinned/read.ts";
import type { PathGuard } from "../guard.ts";
import { type IgnoreRules, isIgnored, withRules } from "./ignore-rules.ts";

/** How many entries a walk passed by, and why. */
export interface LeftOut {
  ignored: number;
  unreadable: number;
}

/** An entry as the walk meets it; its folder is held while it is looked at. */
export interface Met {
  folder: Folder;
  name: string;
  /** The parts of its path below the root. */
  parts: readonly string[];
  kind: "file" | "folder" | "link";
}

export interface Walked {
  left: LeftOut;
  ending: "done" | "stopped" | "late";
}

export interface WalkDeps {
  /** A folder by its real path. */
  root: string;
  /** Looks at an entry; "stop" ends the walk. */
  visit: (met: Met) => "stop" | undefined;
  isLate: () => boolean;
}

const IGNORE_FILE = ".gitignore";
const MOST_RULES = 1_000_000;
/** A NUL among so many bytes at the beginning makes a file binary. */
const LOOKED_AT = 8_000;
/** Never looked into, whatever ignore files say: git's own records, installed packages, and what is no file at all. */
const GIT = ".git";
const PACKAGES = "node_modules";
const NO_FILES = new Set(["/proc", "/sys", "/dev"]);

/**
 * Meets every file, folder and link below a folder by their names, without following links and without what ignore files name.
 * Each folder is opened by its real path and held, so one that is swapped for a link meanwhile leads nowhere.
 */
export function walkFolder({ root, visit, isLate }: WalkDeps): Walked {
  const left: LeftOut = { ignored: 0, unreadable: 0 };
  let ending: Walked["ending"] = "done";
  const start = rulesAbove(root);
  const depth = start.names.length;

  /** `names` are those on the way from the repository to this folder. */
  function enter(path: string, names: readonly string[], above: IgnoreRules | undefined): void {
    const isRoot = names.length === depth;
    let folder: Folder | undefined;
    try {
      folder = openFolder(path);
      const entries = entriesOf(folder).sort((a, b) => (a.name < b.name ? -1 : 1));
      const rules = entries.some(({ name }) => name === IGNORE_FILE) ? rulesIn(folder, names.length, above) : above;
      for (const entry of entries) {
        if (ending !== "done") return;
        meet(folder, entry, [...names, entry.name], rules);
      }
    } catch (error) {
      if (codeOf(error) === undefined || isRoot) throw error;
      left.unreadable += 1;
    } finally {
      folder?.close();
    }
  }

  function meet(folder: Folder, entry: Dirent, names: readonly string[], rules: IgnoreRules | undefined): void {
    const { name } = entry;
    const isFolder = entry.isDirectory();
    if (!isFolder && !entry.isFile() && !entry.isSymbolicLink()) return;
    if (name === GIT || (isFolder && NO_FILES.has(join(folder.path, name)))) return;
    if ((isFolder && name === PACKAGES) || isIgnored(rules, names, isFolder)) {
      left.ignored += 1;
      return;
    }
    if (isLate()) {
      ending = "late";
      return;
    }
    const kind = isFolder ? "folder" : entry.isFile() ? "file" : "link";
    if (visit({ folder, name, parts: depth === 0 ? names : names.slice(depth), kind }) === "stop") ending = "stopped";
    else if (isFolder) enter(join(folder.path, name), names, rules);
  }

  enter(root, start.names, start.rules);
  return { left, ending };
}

/** What the ignore files between a folder and its repository say; nothing if the folder is itself ignored, since it was asked for. */
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
      // A folder that cannot be opened has no rules for us.
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

/** Reads the files that a walk meets, each into the same memory. What a guard keeps closed is not handed out. */
export function createReader(guard: PathGuard, most: number) {
  let memory = Buffer.allocUnsafe(1 << 18);

  /** A file may grow while it is read: what does not fit any more is left. */
  const read = (handle: number, size: number): Content => {
    if (size > most) return { why: "large" };
    if (size > memory.length) memory = Buffer.allocUnsafe(size);
    let length = 0;
    while (length < size) {
      const got = readSync(handle, memory, length, size - length, null);
      if (got === 0) break;
      length += got;
    }
    const bytes = memory.subarray(0, length);
    return bytes.subarray(0, LOOKED_AT).includes(0) ? { why: "binary" } : { bytes };
  };

  /** The bytes of a file if `isWanted` says so of them; they hold until the next one is read. */
  return ({ folder, name }: Pick<Met, "folder" | "name">, isWanted: (bytes: Buffer) => boolean): Content | undefined => {
    const opened = openPlain(folder, name, { isListed: true });
    if ("absent" in opened) return { why: "unreadable" };
    const { handle, stats } = opened;
    try {
      const content = read(handle, stats.size);
      if (!("bytes" in content)) return content;
      if (!isWanted(content.bytes)) return undefined;
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
