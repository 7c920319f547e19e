import { mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join } from "node:path";
import type { Git } from "../git/command.ts";
import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { openBelow } from "../lib/pinned/folder.ts";
import { entriesOf } from "../lib/pinned/list.ts";
import { removeFile } from "../lib/pinned/write.ts";
import { named, namedList } from "../lib/quoted.ts";
import { realOf } from "../lib/real-path.ts";
import { isWithin } from "../lib/within.ts";
import type { ChangedFolder, TurnChanges, TurnChangesRows } from "../store/turn-changes.ts";
import { addChanges } from "./compose.ts";
import { NESTED, type Sorted, sortPaths } from "./entries.ts";
import { MOST_NESTED, type Root, whyTooMuch } from "./roots.ts";
import { lookAt, openShadowIndex, plainPlace, type Seen, type ShadowIndex } from "./shadow-index.ts";

export interface EffectsDeps {
  rows: TurnChangesRows;
  git: Git;
  /** Where IO keeps what an undo needs, with a folder for each record. */
  folder: string;
  /** The data folder; nothing in it is part of a project. */
  home: string;
  log: Log;
  now: () => Date;
}

/** One or more effects of an owner that are running in a folder. */
export interface OpenEffect {
  row: TurnChanges;
  index: ShadowIndex;
  depth: number;
  paths: string[] | null;
  tree: string;
  /** Permissions before it that git does not record. */
  permissions: Map<string, number>;
  /** Other repositories inside the folder, which its own does not record; they are kept separately. */
  nested: string[];
  /** Effects of other owners in the same folder at the same time. */
  others: Set<OpenEffect>;
}

/** The most that is kept of a folder at once, besides what its repository already stores. */
const MOST = { files: 20_000, bytes: 200_000_000 };
/** If an effect changes more files, its changes are not kept. */
const MOST_CHANGED = 5_000;
const MOST_NOTES = 20;
const LEFTOVER = /^\..{1,40}\.[0-9a-f]{12}\.tmp$/s;
export const LIMITS_NOTE =
  "Files that .gitignore names are not kept, nor what commands wrote outside of these folders: an undo leaves both as they are.";
const INTERRUPTED_NOTE = "IO was stopped while this went on; what changed here until it was started again counts as its work.";

/** Unique, because owners are unique and the number distinguishes an owner's folders. */
const refOf = ({ owner, seq }: Pick<TurnChanges, "owner" | "seq">): string => `refs/io/undo/${owner}/${seq}`;

/** Snapshots a folder before an effect, and finds out afterwards what the effect changed. */
export function createEffects({ rows, git, folder, home, log, now }: EffectsDeps) {
  const open = new Map<string, OpenEffect>();
  const keyOf = (owner: string, root: string) => `${owner}\0${root}`;
  const folderOf = ({ seq }: Pick<TurnChanges, "seq">) => join(folder, String(seq));
  const indexOf = (row: Pick<TurnChanges, "seq" | "owner" | "root"> & { place: ChangedFolder }) =>
    openShadowIndex({ git, folder: folderOf(row), root: row.root, place: row.place, ref: refOf(row) });

  async function begin(owner: string, root: Root): Promise<OpenEffect | undefined> {
    const key = keyOf(owner, root.path);
    const known = open.get(key);
    if (known) {
      known.depth += 1;
      known.paths = known.paths === null || root.paths === null ? null : [...known.paths, ...root.paths];
      rows.save({ ...known.row, open: { tree: known.tree, paths: known.paths } });
      return known;
    }
    const row = rows.find(owner, root.path) ?? rows.begin(owner, root.path, now().toISOString());
    const isFirst = row.place === null;
    const place = row.place ?? (await placeFor(root, folderOf(row), { git, home }));
    if ("why" in place) {
      addNote(row, `${named(root.path, 300)} is not kept: ${place.why}. What is changed there cannot be undone.`);
      rows.save(row);
      return undefined;
    }
    mkdirSync(folderOf(row), { recursive: true, mode: 0o700 });
    const index = indexOf({ ...row, place });
    const isNew = isFirst || !index.hasIndex();
    if (isNew) index.make();
    const all = root.kind === "git" && isFirst ? null : root.paths;
    const overlooked = isNew && root.kind === "git" ? index.overlooked() : [];
    const [first, hidden] = await Promise.all([sync(index, row, all, { parent: place.commit }), overlooked]);
    const { sorted, tree } =
      hidden.length === 0 ? first : await syncHidden(index, { row, place, first: first.sorted, all, hidden });
    const nested = sorted.leftOut.flatMap(({ path, why }) => (why === NESTED ? [path] : [])).slice(0, MOST_NESTED);
    if (isFirst) noteLeftOut(row, sorted.leftOut, nested);
    const begun: OpenEffect = {
      row: { ...row, place, open: { tree, paths: root.paths } },
      ...{ index, depth: 1, paths: root.paths, tree, permissions: sorted.permissions, nested, others: new Set() },
    };
    for (const other of open.values()) {
      if (other.row.root !== root.path) continue;
      other.others.add(begun);
      begun.others.add(other);
    }
    rows.save(begun.row);
    open.set(key, begun);
    return begun;
  }

  async function end(effect: OpenEffect): Promise<void> {
    effect.depth -= 1;
    if (effect.depth > 0) return;
    open.delete(keyOf(effect.row.owner, effect.row.root));
    await close(effect).catch((error: unknown) => {
      log.warn("what an effect changed could not be found out", { root: effect.row.root, error: messageOf(error) });
      addNote(effect.row, `What was changed in ${named(effect.row.root, 300)} is not known: ${messageOf(error)}`);
      rows.save({ ...effect.row, open: null });
    });
  }

  async function close({ row, index, paths, tree, permissions, nested, others }: OpenEffect): Promise<void> {
    const { place } = row;
    if (place === null) return;
    const differing = (await index.differing(paths)).filter((path) => !nested.includes(path));
    if (differing.length === 0) return rows.save({ ...row, open: null });
    const sizes = await index.sizes(differing);
    const { sorted, tree: after } = await sync(index, row, paths);
    noteLeftOut(row, sorted.leftOut, nested);
    const isMine = (path: string) => paths === null || paths.some((each) => isWithin(each, path));
    const seen: Seen[] = (await index.compare(tree, after)).filter(({ path }) => isMine(path));
    const claimed = (path: string) => [...others].find((other) => claims(other, path, paths))?.row.owner;
    const files = await addChanges({ ...row, place }, seen, { index, sizes, permissions, after: sorted.permissions, claimed });
    if (Object.keys(files).length > MOST_CHANGED) {
      addNote(row, `More than ${MOST_CHANGED} files were changed in ${named(row.root, 300)}, which is too many to be undone.`);
      return rows.save({ ...row, files: {}, open: null });
    }
    const { commit } = await index.keepChanges(files);
    rows.save({ ...row, files, place: { ...place, commit }, open: null });
  }

  /** Completes the record of an effect that a restart interrupted, as far as it can be known. */
  async function recover(row: TurnChanges): Promise<void> {
    if (row.open === null || row.place === null) return;
    sweepTemporaries(row.root, row.open.paths ?? []);
    const index = indexOf({ ...row, place: row.place });
    addNote(row, INTERRUPTED_NOTE);
    if (!index.hasIndex()) return rows.save({ ...row, open: null });
    const { tree, paths } = row.open;
    await end({ row, index, depth: 1, paths, tree, permissions: new Map(), nested: [], others: new Set() });
  }

  return {
    begin,
    end,
    recover,
    isOpen: (owner: string, root: string) => open.has(keyOf(owner, root)),
    /** The owners whose effects are running in a folder. */
    busyIn: (root: string): string[] => [...open.values()].filter(({ row }) => row.root === root).map(({ row }) => row.owner),
    indexOf,
    folderOf,
  };
}

/** Where a folder's snapshots are stored, or why it has none. */
async function placeFor(
  root: Root,
  own: string,
  { git, home }: Pick<EffectsDeps, "git" | "home">,
): Promise<ChangedFolder | { why: string }> {
  if (root.kind === "git") return lookAt(git, root.path);
  const why = root.paths !== null ? undefined : (whyHome(root.path, home) ?? (await whyTooMuch(root.path)));
  return why === undefined ? plainPlace(own) : { why };
}

function whyHome(folder: string, home: string): string | undefined {
  if (isWithin(folder, realOf(home))) return "it holds IO's own data";
  return isWithin(folder, realOf(homedir())) ? "it holds your home" : undefined;
}

/** Updates the index with all differences. Files that an unfinished merge left with several versions become one. */
async function sync(index: ShadowIndex, row: TurnChanges, paths: string[] | null, keep?: { parent: string | undefined }) {
  const take = async (more: readonly string[]) => {
    const differing = await index.differing(paths);
    const sorted = await sortPaths(row.root, [...new Set([...differing, ...more])], MOST);
    return { sorted, tree: await index.stage(sorted.gone, sorted.there, keep) };
  };
  try {
    return await take([]);
  } catch (error) {
    const unmerged = await index.unmerged();
    if (unmerged.length === 0) throw error;
    return take(unmerged);
  }
}

interface HiddenFiles {
  row: TurnChanges;
  place: ChangedFolder;
  /** The result before these files were seen. */
  first: Sorted;
  all: string[] | null;
  hidden: string[];
}

/** Repeats this with the files that the user has told git to overlook. */
async function syncHidden(index: ShadowIndex, { row, place, first, all, hidden }: HiddenFiles) {
  await index.see(hidden);
  const { sorted, tree } = await sync(index, row, all, { parent: place.commit });
  const permissions = new Map([...first.permissions, ...sorted.permissions]);
  return { sorted: { ...sorted, permissions, leftOut: [...first.leftOut, ...sorted.leftOut] }, tree };
}

/** Notes what is not kept, except repositories that are kept separately. */
function noteLeftOut(row: TurnChanges, all: Sorted["leftOut"], nested: readonly string[]): void {
  const leftOut = all.filter(({ path }) => !nested.includes(path));
  for (const why of new Set(leftOut.map((each) => each.why))) {
    const paths = leftOut.filter((each) => each.why === why).map(({ path }) => path);
    addNote(row, `Not kept (${why}): ${namedList(paths, 5, 200)}.`);
  }
}

/** Whether another effect in the same folder may have made a change that this one sees too. */
function claims(other: OpenEffect, path: string, own: string[] | null): boolean {
  return other.paths === null ? own === null : other.paths.some((each) => isWithin(each, path));
}

export function addNote(row: TurnChanges, note: string): void {
  if (!row.notes.includes(note) && row.notes.length < MOST_NOTES) row.notes = [...row.notes, note];
}

/** Removes the half-written files of an edit that was killed. */
export function sweepTemporaries(root: string, paths: readonly string[]): void {
  for (const path of new Set(paths)) {
    const folder = openBelow(root, dirname(path));
    if (folder === undefined) continue;
    try {
      const own = `.${basename(path).slice(0, 40)}.`;
      for (const { name } of entriesOf(folder)) if (name.startsWith(own) && LEFTOVER.test(name)) removeFile(folder, name);
    } finally {
      folder.close();
    }
  }
}
