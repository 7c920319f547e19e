import { chmodSync, rmSync } from "node:fs";
import { backup, DatabaseSync } from "@photostructure/sqlite";
import { unusable } from "./open.ts";

export interface SnapshotOptions {
  /** When copying of the files began. */
  since: string;
  /** Whether to mark work that ended since then as interrupted, because its files may be missing. */
  cutOff: boolean;
}

export interface Snapshot {
  /** True if nothing started or ended since, so that the database and the files match. */
  isQuiet: boolean;
}

/** How many pages are copied in one step. */
const PAGES = 256;
/** How far back to search for changes; copying the files takes less time. */
const LATEST = 2_000;

/** Copies a consistent snapshot of the database in steps, off this thread, without blocking writers. */
export async function takeSnapshot(database: string, target: string, options: SnapshotOptions): Promise<Snapshot> {
  try {
    rmSync(target, { force: true });
    const source = new DatabaseSync(database, { readOnly: true });
    try {
      // This read transaction does not see later writes, so the copy never has to restart.
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

/** Finds changes in a copy since copying of the files began. */
function compareWith(copy: string, { since, cutOff }: SnapshotOptions): Snapshot {
  const db = new DatabaseSync(copy);
  try {
    db.exec("PRAGMA journal_mode = DELETE; PRAGMA synchronous = OFF");
    // A database of an earlier version may lack a table.
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

/** Tables whose work leaves files: how to detect that it started or ended since, and how to undo its end. */
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
