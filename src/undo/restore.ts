import { rmdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { createBreath } from "../lib/breath.ts";
import { codeOf } from "../lib/errors.ts";
import { type Folder, makeFolder, openBelow, withFolder } from "../lib/pinned/folder.ts";
import { fileId } from "../lib/pinned/identity.ts";
import { statsOf } from "../lib/pinned/list.ts";
import { readPlainAt } from "../lib/pinned/read.ts";
import { removeFile, replaceFile, replaceLink, syncFolder } from "../lib/pinned/write.ts";
import { realOf } from "../lib/real-path.ts";
import type { Change, ChangedFolder, Entry, TurnChanges } from "../store/turn-changes.ts";
import { entryAt, isSame, LARGEST } from "./entries.ts";
import type { ShadowIndex } from "./shadow-index.ts";

export type Direction = "undo" | "redo";

export interface Kept {
  path: string;
  why: string;
}

export interface Restored {
  /** The paths that were restored. */
  files: string[];
  /** The paths that were already as wanted. */
  already: string[];
  kept: Kept[];
}

export interface RestoreDeps {
  row: TurnChanges & { place: ChangedFolder };
  index: ShadowIndex;
  /** Called once, before the first file is changed. */
  onBegin: () => void;
}

const SINCE = "it was changed since";

interface Step {
  path: string;
  from: Entry | null;
  to: Entry | null;
}

/** Restores files to their state before, or after, an owner's work; only those that nobody has changed since. */
export async function restore({ row, index, onBegin }: RestoreDeps, direction: Direction): Promise<Restored> {
  const { root, place } = row;
  const { steps, already, kept } = await plan(row, direction);
  if (steps.length === 0) return { files: [], already, kept };
  const wanted = steps.flatMap(({ to }, at) => (to ? [[String(at), to] as const] : []));
  const out = wanted.length === 0 ? "" : await index.extract(wanted);
  onBegin();
  const files: string[] = [];
  const breathe = createBreath();
  const numbered = steps.map((step, at) => ({ ...step, source: join(out, String(at)) }));
  // Deletes before it creates: a file may take the place of a folder.
  for (const step of [...numbered.filter(({ to }) => to === null), ...numbered.filter(({ to }) => to !== null)]) {
    await breathe();
    const why = await apply(root, place, step);
    if (why === undefined) files.push(step.path);
    else kept.push({ path: step.path, why });
  }
  return { files, already, kept };
}

async function plan({ root, place, files }: TurnChanges & { place: ChangedFolder }, direction: Direction) {
  const steps: Step[] = [];
  const already: string[] = [];
  const kept: Kept[] = [];
  for (const [path, change] of Object.entries(files)) {
    const [from, to] = endsOf(change, direction);
    if (change.kept !== undefined) {
      kept.push({ path, why: change.kept });
      continue;
    }
    const found = await entryAt(root, path, place);
    if ("unreadable" in found) kept.push({ path, why: found.unreadable });
    else if (isSame(found.entry, from, place)) steps.push({ path, from, to });
    else if (isSame(found.entry, to, place)) already.push(path);
    else kept.push({ path, why: SINCE });
  }
  return { steps, already, kept };
}

const endsOf = ({ before, after }: Change, direction: Direction) =>
  direction === "undo" ? ([after, before] as const) : ([before, after] as const);

class Changed extends Error {}

/** Restores one file if it is still in the expected state; otherwise says why not. */
async function apply(
  root: string,
  place: ChangedFolder,
  { path, from, to, source }: Step & { source: string },
): Promise<string | undefined> {
  let folder: Folder | undefined;
  try {
    const name = basename(path);
    folder = to === null ? openBelow(root, dirname(path)) : makeFolder(join(realOf(root), dirname(path)), 0o777);
    if (folder === undefined) return SINCE;
    const held = folder;
    const stats = statsOf(held, name);
    const found = await entryAt(root, path, place);
    if ("unreadable" in found || !isSame(found.entry, from, place)) return SINCE;
    const beforeRename = () => {
      if (fileId(statsOf(held, name)) !== fileId(stats)) throw new Changed();
    };
    if (to === null) {
      beforeRename();
      removeFile(held, name);
      syncFolder(held);
      removeEmpty(root, dirname(path));
      return undefined;
    }
    const read = readPlainAt(realOf(source), LARGEST);
    if ("absent" in read) return "what it was is not stored any more";
    if (to.mode === "120000") replaceLink(held, name, read.bytes, { beforeRename });
    else if (stats?.isFile())
      replaceFile(held, name, read.bytes, { like: { ...stats, mode: modeOf(to, stats.mode) }, beforeRename });
    else replaceFile(held, name, read.bytes, { mode: to.permissions ?? (to.mode === "100755" ? 0o777 : 0o666), beforeRename });
    return undefined;
  } catch (error) {
    if (error instanceof Changed) return SINCE;
    if (codeOf(error) === undefined) throw error;
    return `it cannot be written (${codeOf(error)})`;
  } finally {
    folder?.close();
  }
}

/** The file's former permissions, if known; otherwise its current ones, executable or not as the mode says. */
function modeOf({ mode, permissions }: Entry, now: bigint): bigint {
  if (permissions !== undefined) return BigInt(permissions);
  // As in git, whoever may read a program may run it.
  return mode === "100755" ? now | ((now & 0o444n) >> 2n) : now & ~0o111n;
}

/** Removes folders that are now empty, as git does. */
function removeEmpty(root: string, path: string): void {
  for (let at = path; at !== "." && at !== ""; at = dirname(at)) {
    try {
      const above = openBelow(root, dirname(at));
      if (above === undefined) return;
      above.close();
      withFolder(above.path, (folder) => rmdirSync(folder.entry(basename(at))));
    } catch (error) {
      if (codeOf(error) === undefined) throw error;
      // It is not empty, or may not be removed: it stays, and so do the folders above it.
      return;
    }
  }
}
