import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Git } from "../git/command.ts";
import { conflict, messageOf, UserError } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { named } from "../lib/quoted.ts";
import { realOf } from "../lib/real-path.ts";
import { removeTree } from "../process/remove-tree.ts";
import type { ChangedFile, ChangeSummary, Difference, UndoResult } from "../protocol/changes.ts";
import type { Store } from "../store/open.ts";
import {
  type Change,
  type ChangedFolder,
  createTurnChanges,
  type TurnChanges,
  type TurnChangesHead,
} from "../store/turn-changes.ts";
import { readDifference } from "./difference.ts";
import { LIMITS_NOTE, sweepTemporaries } from "./effects.ts";
import { createKeeper } from "./keeper.ts";
import { type Direction, restore } from "./restore.ts";

export interface UndoDeps {
  store: Store;
  git: Git;
  /** Where IO keeps what an undo needs. */
  folder: string;
  /** The data folder. */
  home: string;
  log: Log;
  now?: () => Date;
  /** The most records that are kept. */
  keep?: number;
}

const WEEK_MS = 7 * 86_400_000;
const MOST_REMOVED = 10_000;

type Kept = TurnChanges & { place: ChangedFolder };

const isKept = (row: TurnChanges): row is Kept => row.place !== null;

/** Shows what messages and tasks changed in files, and undoes it. */
export function createUndo({ store, git, folder, home, log, now, keep = 1_000 }: UndoDeps) {
  const rows = createTurnChanges(store);
  const keeper = createKeeper({ rows, git, folder, home, log, ...(now && { now }) });

  /** An owner's records, once its last effect is recorded. */
  async function settled(owner: string): Promise<TurnChanges[]> {
    await Promise.all(rows.of(owner).map(({ root }) => keeper.alone(owner, root, async () => undefined)));
    return rows.of(owner);
  }

  /** Undoes or redoes the changes in one folder. The intent is on disk before the first file is changed. */
  async function turnBack(row: Kept, direction: Direction) {
    mkdirSync(keeper.folderOf(row), { recursive: true, mode: 0o700 });
    const index = keeper.indexOf(row);
    if (!index.isMade()) index.make();
    const done = await restore({ row, index, onBegin: () => rows.save({ ...row, undoing: direction }) }, direction);
    const isDone = done.files.length > 0 || (done.already.length > 0 && done.kept.length === 0);
    rows.save({ ...row, undoing: null, undone: isDone || row.undoing !== null ? direction === "undo" : row.undone });
    index.dropIndex();
    return done;
  }

  /** Continues an interrupted undo; a file that is already as wanted is left alone. */
  async function finish(row: TurnChanges): Promise<void> {
    if (row.undoing === null || !isKept(row)) return;
    sweepTemporaries(row.root, Object.keys(row.files));
    const { kept } = await turnBack(row, row.undoing);
    log.info("an undo that was cut off was finished", { owner: row.owner, root: row.root, kept: kept.length });
  }

  async function remove({ seq, owner, root, place }: TurnChangesHead): Promise<boolean> {
    try {
      if (place !== null) await keeper.indexOf({ seq, owner, root, place }).forget();
    } catch (error) {
      // The repository is gone together with its refs, or cannot be reached now.
      log.info("what was kept for an undo could not be let go in its repository", { root, error: messageOf(error) });
    }
    await removeTree(join(realOf(folder), String(seq)));
    rows.remove(seq);
    return true;
  }

  async function removeOld(before: string): Promise<number> {
    const seen = new Map([...rows.olderThan(before, MOST_REMOVED), ...rows.beyond(keep)].map((row) => [row.seq, row]));
    let count = 0;
    for (const row of seen.values()) if (await keeper.alone(row.owner, row.root, () => remove(row))) count += 1;
    return count;
  }

  return {
    before: keeper.before,
    settle: keeper.settle,
    close: keeper.close,
    /** Whether any changes of an owner are known. */
    knows: (owner: string): boolean => rows.knows(owner),

    async diff(owner: string): Promise<Difference> {
      const all = await settled(owner);
      const parts = await Promise.all(
        all.filter(isKept).map((row) => readDifference(row, keeper.indexOf(row).reader, { isAlone: all.length === 1 })),
      );
      const notes = [...new Set([...all.flatMap((row) => row.notes), ...(all.some(isKept) ? [LIMITS_NOTE] : [])])];
      const texts = parts.map(({ text }) => text).filter((text) => text !== "");
      const undone = all.some((row) => row.undone);
      return { text: texts.join("\n"), files: parts.flatMap(({ files }) => files), notes, undone };
    },

    /** Restores what an owner changed and nobody has changed since. If it was undone before, redoes it. */
    async undo(owner: string): Promise<UndoResult> {
      const all = (await settled(owner)).filter(isKept);
      if (all.every(({ files }) => Object.keys(files).length === 0)) {
        const [why] = rows.of(owner).flatMap(({ notes }) => notes);
        throw conflict(`There is nothing to undo: no change of a file is known of ${owner}.${why ? ` ${why}` : ""}`);
      }
      const busy = all.map(({ root }) => ({ root, by: keeper.busyIn(root)[0] })).find(({ by }) => by !== undefined);
      if (busy) throw conflict(`${busy.by} works in ${named(busy.root, 300)} now. Wait for it or cancel it, then undo.`);
      const direction: Direction = all.some(({ undone }) => undone) ? "redo" : "undo";
      const result: UndoResult = { id: owner, undone: direction === "undo", files: [], kept: [], notes: [] };
      for (const { seq, root } of all) {
        await keeper.restoring(owner, root, async () => {
          const row = rows.get(seq);
          if (!row || !isKept(row) || (direction === "redo" && !row.undone)) return;
          const done = await turnBack(row, direction).catch((error: unknown) => {
            if (error instanceof UserError) throw conflict(`${named(root, 300)} could not be brought back: ${error.message}`);
            throw error;
          });
          result.files.push(...done.files.map((path) => fileOf(row, path, direction)));
          result.kept.push(...done.kept.map((each) => ({ folder: root, ...each })));
        });
      }
      const after = rows.of(owner);
      const notes = [...new Set([...after.flatMap((row) => row.notes), LIMITS_NOTE])];
      return { ...result, undone: after.some(({ undone }) => undone), notes };
    },

    /** Newest first. */
    async latest(conversation: string | undefined, most: number): Promise<ChangeSummary[]> {
      await keeper.caughtUp();
      return summariesOf(rows.latest(conversation ?? null, most * 3)).slice(0, most);
    },

    /** Finishes what the last run of the daemon left: effects whose changes were not recorded, and interrupted undos. */
    recover(): void {
      for (const row of rows.unfinished()) {
        const work = row.open === null ? keeper.restoring(row.owner, row.root, () => finish(row)) : keeper.recover(row);
        work.catch((error: unknown) =>
          log.warn("what an earlier life changed could not be looked at", { owner: row.owner, error: messageOf(error) }),
        );
      }
    },

    /** Deletes the records from before a moment, by default a week ago, and returns their number; `dryRun` only counts. */
    async clean({ before, dryRun }: { before: Date | undefined; dryRun: boolean }): Promise<number> {
      const moment = (before ?? new Date(Date.now() - WEEK_MS)).toISOString();
      return dryRun ? rows.olderThan(moment, MOST_REMOVED).length : removeOld(moment);
    },
    /** Deletes records from before a moment, and those beyond the most that are kept. */
    removeOld,
  };
}
export type Undo = ReturnType<typeof createUndo>;

/** Combines several folders of one owner into one entry. */
function summariesOf(heads: readonly TurnChangesHead[]): ChangeSummary[] {
  const byOwner = new Map<string, ChangeSummary>();
  for (const { owner, root, changed, undone, createdAt } of heads) {
    const kind = owner.startsWith("t_") ? ("task" as const) : ("message" as const);
    const known = byOwner.get(owner) ?? { id: owner, kind, folders: [], files: 0, undone: false, createdAt };
    const folders = [...known.folders, root];
    byOwner.set(owner, { ...known, folders, files: known.files + changed, undone: known.undone || undone });
  }
  return [...byOwner.values()];
}

function fileOf({ root, files }: TurnChanges, path: string, direction: Direction): ChangedFile {
  const change = files[path] as Change;
  const [from, to] = direction === "undo" ? [change.after, change.before] : [change.before, change.after];
  const state = from === null ? "added" : to === null ? "deleted" : from.oid === to.oid ? "mode" : "changed";
  return { folder: root, path, state };
}
