import { chmodSync, rmSync } from "node:fs";
import { backup, DatabaseSync } from "@photostructure/sqlite";
import { unusable } from "./open.ts";

export interface SnapshotOptions {
  /** When the files that belong to it began to be copied. */
  since: string;
  /** Whether what ended since then is to count as cut off: its traces may be missing among the files. */
  cutOff: boolean;
}

export interface Snapshot {
  /** Nothing began or ended since, so that the database and the files tell of the same moment. */
  isQuiet: boolean;
}

/** How many pages are copied in one step. */
const PAGES = 256;
/** How far back it is looked for what happened since; a pass over the files takes no longer. */
const LATEST = 2_000;

/** Copies the database as it is at one moment, in steps and off this thread. Whoever writes meanwhile does not wait. */
export async function takeSnapshot(database: string, target: string, options: SnapshotOptions): Promise<Snapshot> {
  try {
    rmSync(target, { force: true });
    const source = new DatabaseSync(database, { readOnly: true });
    try {
      // Later writes are not in what this connection reads from here on, so the copy is never begun anew.
      source.exec("BEGIN; SELECT count(*) FROM sqlite_master");
      await backup(source, target, { rate: PAGES });
    } finally {
      source.close();
    }
    chmodSync(target, 0o600);
    return compareWith(target, options);
  } catch (error) {
    throw unusable(database, error);
  }
}

/** Looks in a copy for what happened since the files began to be copied. */
function compareWith(copy: string, { since, cutOff }: SnapshotOptions): Snapshot {
  const db = new DatabaseSync(copy);
  try {
    db.exec("PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF");
    // A home of an earlier version may lack a table.
    const has = (table: string) => db.prepare("SELECT 1 FROM sqlite_master WHERE name = ?").get(table) !== undefined;
    const latest = (table: string, condition: string) =>
      `seq IN (SELECT seq FROM ${table} WHERE seq > (SELECT max(seq) FROM ${table}) - ${LATEST} AND ${condition})`;
    const moved = MOVED.filter(({ table }) => has(table)).map(({ table, condition, undo }) => {
      const where = latest(table, condition);
      if (cutOff && undo) db.prepare(`UPDATE ${table} SET ${undo} WHERE ${where}`).run({ since });
      return db.prepare(`SELECT 1 FROM ${table} WHERE ${where} LIMIT 1`).get({ since });
    });
    return { isQuiet: moved.every((row) => row === undefined) };
  } finally {
    db.close();
  }
}

/** What leaves traces among the files, how it is told that it began or ended since, and how its end is taken back. */
const MOVED: { table: string; condition: string; undo?: string }[] = [
  { table: "messages", condition: "(started_at >= :since OR finished_at >= :since)" },
  {
    table: "tool_calls",
    condition:
      "kind = 'effect' AND state IN ('begun', 'done', 'failed') AND (created_at >= :since OR julianday(created_at) + coalesce(duration_ms, 0) / 86400000.0 >= julianday(:since))",
    undo: "state = 'begun', result = NULL, result_hash = NULL, duration_ms = NULL",
  },
  {
    table: "run_steps",
    condition: "kind IN ('call', 'checks', 'git') AND (started_at >= :since OR finished_at >= :since)",
    undo: "state = 'begun', result = NULL, verdict = NULL, error = NULL, finished_at = NULL",
  },
];
