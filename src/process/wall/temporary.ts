import { createHash, randomBytes } from "node:crypto";
import { closeSync, lstatSync, mkdirSync, openSync, renameSync, rmdirSync, type Stats, unlinkSync, utimesSync } from "node:fs";
import { lstat, readdir } from "node:fs/promises";
import { join, relative, sep } from "node:path";
import { createBreath } from "../../lib/breath.ts";
import type { FolderNames } from "../../lib/folder-names.ts";
import { isWithin } from "../../lib/within.ts";
import { removeTree } from "../remove-tree.ts";

/** The arguments that mount a temporary folder, and whether a path of the real one is visible in it. */
export interface OwnTemporary {
  args: string[];
  /** Every folder of the real one is visible. */
  isWhole: boolean;
  sees: (path: string) => boolean;
}

export interface TemporaryDeps {
  /** The project: its commands share one folder, so that each finds what another left. */
  project: string;
  /** Paths that must be visible, wherever they are. */
  needed: readonly string[];
  /** The command: entries that it names are made visible. */
  argv: readonly string[];
  /** Paths that must stay hidden. */
  hidden: readonly string[];
}

const TMP = "/tmp";
/** How many other entries of the real folder are shown, newest first. Each one is a mount. */
const MAX_SHOWN = 12;
const MAX_NAMED = 16;
/** How much of a command is searched for names of entries. */
const MAX_SEARCHED = 20_000;
/** How many entries are examined, and how long the result is cached. */
const MAX_EXAMINED = 3_000;
const LISTING_CACHE_MS = 1_000;
/** A project's folder is deleted after this long without use. */
const UNUSED_MS = 14 * 24 * 3_600_000;
/** The mode of mount points, by which they are recognised when their entry has gone. */
const STUB = 0o1000;

/**
 * Replaces /tmp by a folder for each project that lasts from command to command. Entries of the real /tmp are shown in it
 * read-only, so that no command can change what another program keeps there.
 */
export function createTemporaries(folder: string, namesIn: FolderNames) {
  const stubs = new Map<string, Promise<Set<string>>>();
  let listing: { at: number; names: ReadonlySet<string>; newest: readonly string[] } | undefined;
  let isSwept = false;

  /** The entries of the real folder, newest first. Entries that are new since the last listing come before all others. */
  async function listNewest(): Promise<readonly string[]> {
    const names = await namesIn(TMP);
    if (listing === undefined || performance.now() - listing.at > LISTING_CACHE_MS)
      listing = { at: performance.now(), names: new Set(names), newest: await newestOf(names) };
    const { names: known, newest } = listing;
    return [...names.filter((name) => !known.has(name)), ...newest];
  }

  return async ({ project, needed, argv, hidden }: TemporaryDeps): Promise<OwnTemporary> => {
    const own = join(folder, createHash("sha256").update(project).digest("hex").slice(0, 16));
    mkdirSync(own, { recursive: true, mode: 0o700 });
    const now = new Date();
    utimesSync(own, now, now);
    if (!isSwept) {
      isSwept = true;
      void removeUnused(folder);
    }
    const namesOf = (paths: readonly string[]) => new Set(paths.flatMap((path) => topOf(path) ?? []));
    const [wanted, excluded] = [namesOf(needed), namesOf(hidden)];
    const there = (await listNewest()).filter((name) => !excluded.has(name));
    const names = [...new Set([...wanted, ...namedIn(argv, there), ...there.slice(0, MAX_SHOWN)])];
    const known = stubs.get(own) ?? findStubs(own);
    stubs.set(own, known);
    const made = await known;
    removeStubs(own, made, new Set(names));
    const shown = names.filter((name) => prepare(own, name, wanted.has(name)));
    for (const name of shown) made.add(name);
    const seen = new Set(shown);
    return {
      args: ["--bind", own, TMP, ...shown.flatMap((name) => ["--ro-bind-try", join(TMP, name), join(TMP, name)])],
      isWhole: there.every((name) => seen.has(name)),
      sees: (path) => {
        const top = topOf(path);
        return top === undefined || seen.has(top);
      },
    };
  };
}

/** The entries whose names appear in a command that mentions /tmp, quoted or not; longer names first, as more specific. */
function namedIn(argv: readonly string[], names: readonly string[]): string[] {
  const words = argv.filter((word) => word.includes(TMP));
  if (words.length === 0) return [];
  const text = words.join(" ").slice(0, MAX_SEARCHED).replaceAll("\\", "");
  const named = names.slice(0, MAX_EXAMINED).filter((name) => text.includes(name));
  return named.sort((a, b) => b.length - a.length).slice(0, MAX_NAMED);
}

/** Deletes the folders of projects that are no longer used. */
async function removeUnused(folder: string): Promise<void> {
  for (const name of await readdir(folder).catch(() => [])) {
    const path = join(folder, name);
    const found = statsOf(path);
    if (found && Date.now() - found.mtimeMs > UNUSED_MS)
      // What cannot be deleted is tried again when the next daemon starts.
      await removeTree(path).catch(() => undefined);
  }
}

/** The first part of a path below /tmp. */
function topOf(path: string): string | undefined {
  return isWithin(TMP, path) && path !== TMP ? relative(TMP, path).split(sep)[0] : undefined;
}

async function newestOf(names: readonly string[]): Promise<readonly string[]> {
  const times = await Promise.all(
    names.slice(0, MAX_EXAMINED).map(async (name) => {
      const found = await lstat(join(TMP, name)).catch(() => undefined);
      return found && !found.isSymbolicLink() && !found.isSocket() ? [{ name, at: found.mtimeMs }] : [];
    }),
  );
  return times
    .flat()
    .sort((a, b) => b.at - a.at)
    .map(({ name }) => name);
}

/**
 * Creates a mount point for an entry. A file that a command made by that name stays, or is moved aside if the entry is
 * needed. Commands may be running in the folder, so links are never followed.
 */
function prepare(own: string, name: string, isNeeded: boolean): boolean {
  const real = statsOf(join(TMP, name));
  if (real === undefined || real.isSymbolicLink() || (real.isSocket() && !isNeeded)) return false;
  const stub = join(own, name);
  const there = statsOf(stub);
  if (there && isStub(there) && there.isDirectory() === real.isDirectory()) return true;
  try {
    if (there && !isStub(there)) {
      if (!isNeeded) return false;
      renameSync(stub, join(own, `.${name}-${randomBytes(4).toString("hex")}`));
    } else if (there) remove(stub, there);
    if (real.isDirectory()) mkdirSync(stub, { mode: STUB });
    else closeSync(openSync(stub, "wx", STUB));
    return true;
  } catch {
    // A command was faster. It sees the entry that it made itself.
    return false;
  }
}

/** The mount points that an earlier daemon made. Commands may have filled the folder with any number of files. */
async function findStubs(own: string): Promise<Set<string>> {
  const breathe = createBreath();
  const found = new Set<string>();
  for (const name of await readdir(own).catch(() => [])) {
    const there = statsOf(join(own, name));
    if (there && isStub(there)) found.add(name);
    await breathe();
  }
  return found;
}

/** Removes mount points that are no longer used. */
function removeStubs(own: string, made: Set<string>, names: ReadonlySet<string>): void {
  for (const name of [...made].filter((name) => !names.has(name))) {
    const there = statsOf(join(own, name));
    if (!there || !isStub(there) || remove(join(own, name), there)) made.delete(name);
  }
}

const isStub = (stats: Stats): boolean => (stats.mode & 0o7777) === STUB;

function remove(path: string, stats: Stats): boolean {
  try {
    if (stats.isDirectory()) rmdirSync(path);
    else unlinkSync(path);
    return true;
  } catch {
    // Another running command is about to use it.
    return false;
  }
}

function statsOf(path: string): Stats | undefined {
  return lstatSync(path, { throwIfNoEntry: false });
}
