import { z } from "zod";
import type { Store } from "./open.ts";
import { readJson } from "./read-json.ts";

/** A file as git would store it: its mode and the hash of its content. */
const Entry = z.object({
  mode: z.string(),
  oid: z.string(),
  /** Its permissions, if git would not record them. */
  permissions: z.number().int().optional(),
});
export type Entry = z.infer<typeof Entry>;

/** The change of one file; null where it did not exist. */
const Change = z.object({
  before: Entry.nullable(),
  after: Entry.nullable(),
  /** Why it cannot be undone. */
  kept: z.string().optional(),
});
export type Change = z.infer<typeof Change>;

/** Where a folder's states are stored. */
const ChangedFolder = z.object({
  kind: z.enum(["git", "folder"]),
  /** The repository's own folder; for a folder without git, one of IO's. */
  gitDir: z.string(),
  /** Its object folder. */
  objects: z.string(),
  hash: z.enum(["sha1", "sha256"]),
  /** Whether the file system records executable bits. */
  fileMode: z.boolean(),
  /** The commit of the latest state. */
  commit: z.string().optional(),
});
export type ChangedFolder = z.infer<typeof ChangedFolder>;

/** An effect that has begun: the tree before it, and the paths it may change; no list means any. */
const OpenEffect = z.object({ tree: z.string(), paths: z.array(z.string()).nullable() });
export type OpenEffect = z.infer<typeof OpenEffect>;

export interface TurnChanges {
  seq: number;
  /** The message or task. */
  owner: string;
  root: string;
  /** Null if nothing is stored; the notes say why. */
  place: ChangedFolder | null;
  files: Record<string, Change>;
  notes: string[];
  open: OpenEffect | null;
  undone: boolean;
  undoing: "undo" | "redo" | null;
  createdAt: string;
}

/** The same without its files, of which there may be thousands. */
export type TurnChangesHead = Pick<TurnChanges, "seq" | "owner" | "root" | "place" | "undone" | "createdAt"> & {
  /** The number of changed files. */
  changed: number;
};

const HEAD = "seq, owner, root, place, undone, changed, created_at AS createdAt";
const COLUMNS = "seq, owner, root, place, files, notes, open, undone, undoing, created_at AS createdAt";

/** The record of what messages and tasks changed. */
export function createTurnChanges(store: Store) {
  const { db } = store;
  const select = (rest: string) => db.prepare(`SELECT ${COLUMNS} FROM turn_changes ${rest}`);
  const bySeq = select("WHERE seq = ?");
  const byRoot = select("WHERE owner = ? AND root = ?");
  const byOwner = select("WHERE owner = ? ORDER BY seq");
  const unfinished = select("WHERE open IS NOT NULL OR undoing IS NOT NULL ORDER BY seq");
  const heads = (rest: string) => db.prepare(`SELECT ${HEAD} FROM turn_changes ${rest}`);
  const known = db.prepare("SELECT 1 FROM turn_changes WHERE owner = ? LIMIT 1");
  const old = heads("WHERE created_at < ? AND open IS NULL AND undoing IS NULL ORDER BY seq LIMIT ?");
  const beyond = heads("WHERE open IS NULL AND undoing IS NULL ORDER BY seq DESC LIMIT -1 OFFSET ?");
  const latest = heads(
    `WHERE changed > 0 AND (?1 IS NULL OR owner IN (SELECT id FROM messages WHERE conversation = ?1)
       OR owner IN (SELECT id FROM agent_tasks WHERE json_extract(origin, '$.conversation') = ?1)) ORDER BY seq DESC LIMIT ?2`,
  );
  const insert = db.prepare("INSERT INTO turn_changes (owner, root, created_at) VALUES (?, ?, ?)");
  const update = db.prepare(
    "UPDATE turn_changes SET place = ?, files = ?, changed = ?, notes = ?, open = ?, undone = ?, undoing = ? WHERE seq = ?",
  );
  const remove = db.prepare("DELETE FROM turn_changes WHERE seq = ?");
  const read = (row: unknown) => (row === undefined ? undefined : rowOf(row as Record<string, unknown>));
  const all = (rows: unknown[]) => rows.map((row) => rowOf(row as Record<string, unknown>));
  const allHeads = (rows: unknown[]) => rows.map((row) => headOf(row as Record<string, unknown>));

  return {
    get: (seq: number) => read(bySeq.get(seq)),
    find: (owner: string, root: string) => read(byRoot.get(owner, root)),
    knows: (owner: string) => known.get(owner) !== undefined,
    of: (owner: string) => all(byOwner.all(owner)),
    /** Changes with an interrupted effect or undo. */
    unfinished: () => all(unfinished.all()),
    olderThan: (moment: string, most: number) => allHeads(old.all(moment, most)),
    /** All but the newest. */
    beyond: (count: number) => allHeads(beyond.all(count)),
    /** The newest that changed something, in one conversation or in any. */
    latest: (conversation: string | null, most: number) => allHeads(latest.all(conversation, most)),
    begin(owner: string, root: string, createdAt: string): TurnChanges {
      const { lastInsertRowid } = insert.run(owner, root, createdAt);
      return rowOf(bySeq.get(Number(lastInsertRowid)) as Record<string, unknown>);
    },
    /** On disk when this returns. */
    save({ seq, place, files, notes, open, undone, undoing }: TurnChanges): void {
      const json = (value: unknown) => (value === null ? null : JSON.stringify(value));
      const changed = Object.keys(files).length;
      store.transaction(() =>
        update.run(json(place), json(files), changed, json(notes), json(open), undone ? 1 : 0, undoing, seq),
      );
    },
    remove: (seq: number) => void remove.run(seq),
  };
}
export type TurnChangesRows = ReturnType<typeof createTurnChanges>;

function headOf(row: Record<string, unknown>): TurnChangesHead {
  return {
    ...{ seq: Number(row.seq), owner: String(row.owner), root: String(row.root), createdAt: String(row.createdAt) },
    ...{ place: readJson(ChangedFolder, row.place) ?? null, undone: row.undone === 1, changed: Number(row.changed) },
  };
}

function rowOf(row: Record<string, unknown>): TurnChanges {
  return {
    seq: Number(row.seq),
    owner: String(row.owner),
    root: String(row.root),
    place: readJson(ChangedFolder, row.place) ?? null,
    files: readJson(z.record(z.string(), Change), row.files) ?? {},
    notes: readJson(z.array(z.string()), row.notes) ?? [],
    open: readJson(OpenEffect, row.open) ?? null,
    undone: row.undone === 1,
    undoing: row.undoing === "undo" || row.undoing === "redo" ? row.undoing : null,
    createdAt: String(row.createdAt),
  };
}
