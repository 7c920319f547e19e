import { chmodSync, renameSync, rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { DatabaseSync } from "@photostructure/sqlite";
import { codeOf, messageOf, UserError } from "../lib/errors.ts";
import { createFlusher } from "./flusher.ts";
import { MIGRATIONS, type Migration } from "./migrations.ts";

export type Database = InstanceType<typeof DatabaseSync>;

/** One SQLite file, and the three ways of writing to it. */
export interface Store {
  readonly db: Database;
  /** Runs it whole or not at all; a transaction inside another is part of it. On disk when this returns. */
  transaction<T>(work: () => T): T;
  /** Runs once the transaction around this is kept, and not at all if it is not; at once where there is none. */
  afterCommit(work: () => void): void;
  /** Writes without waiting for the disk: for what may be lost in a power cut, though not in a crash. */
  soft<T>(work: () => T): T;
  /** The same, and has it brought to the disk meanwhile: for what should last, and which nobody outside counts on yet. */
  soon<T>(work: () => T): T;
  /** For what can be done later: where another process holds the file this throws at once (see `isBusy`) instead of waiting. */
  atOnce<T>(work: () => T): T;
  close(): void;
}

/** How long another process may hold the file. */
const BUSY_MS = 5_000;
/** How long to leave it alone before asking again. */
const RETRY_MS = 250;

export function openStore(path: string, migrations: readonly Migration[] = MIGRATIONS): Store {
  const db = openFile(path);
  try {
    db.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
    patiently(() => db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;"));
    patiently(() => migrate(db, path, migrations));
  } catch (error) {
    db.close();
    throw error instanceof UserError ? error : unusable(path, error);
  }
  if (path !== ":memory:") chmodSync(path, 0o600);

  const flusher = createFlusher(path);
  let kept: (() => void)[] = [];
  const due = () => {
    const all = kept;
    kept = [];
    return all;
  };
  const soft: Store["soft"] = (work) => {
    if (db.isTransaction) return work();
    db.exec("PRAGMA synchronous = NORMAL");
    try {
      return work();
    } finally {
      db.exec("PRAGMA synchronous = FULL");
    }
  };
  return {
    db,
    transaction: createTransaction(db, {
      onCommit: () => {
        for (const work of due()) work();
      },
      onRollback: due,
    }),
    afterCommit(work) {
      if (db.isTransaction) kept.push(work);
      else work();
    },
    soft,
    soon(work) {
      const result = soft(work);
      flusher.flush();
      return result;
    },
    atOnce(work) {
      if (db.isTransaction) return work();
      db.exec("PRAGMA busy_timeout = 0");
      try {
        return work();
      } finally {
        db.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
      }
    },
    close() {
      flusher.close();
      db.close();
    },
  };
}

/** Runs work whole or not at all; one inside another is part of it. */
export function createTransaction(
  db: Database,
  { onCommit, onRollback }: { onCommit?: () => void; onRollback?: () => void } = {},
): <T>(work: () => T) => T {
  const whole = <T>(work: () => T): T => {
    db.exec("BEGIN IMMEDIATE");
    try {
      const result = work();
      db.exec("COMMIT");
      return result;
    } catch (error) {
      if (db.isTransaction) db.exec("ROLLBACK");
      onRollback?.();
      throw error;
    }
  };
  return (work) => {
    if (db.isTransaction) return work();
    const result = whole(work);
    onCommit?.();
    return result;
  };
}

function openFile(path: string): Database {
  try {
    return new DatabaseSync(path);
  } catch (error) {
    throw unusable(path, error);
  }
}

/** Whether an error says that another process holds the database. */
export function isBusy(error: unknown): boolean {
  return /database (?:table )?is (?:locked|busy)/i.test(messageOf(error));
}

/** Tries again for as long as another process holds the database, without keeping anybody else from working meanwhile. */
export async function whenFree<T>(work: () => T): Promise<T> {
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error)) throw error;
      await sleep(RETRY_MS);
    }
  }
}

/** What a person is told when the database will not take any more; undefined for any other error. */
export function storeTrouble(error: unknown): string | undefined {
  const text = messageOf(error);
  if (isBusy(error))
    return `Another program has held IO's database for ${BUSY_MS / 1000} seconds: nothing was accepted. Send it again in a moment.`;
  if (/disk is full|ENOSPC/i.test(text)) return "The disk is full: nothing was accepted. Free some space and send it again.";
  if (/readonly database|disk I\/O error|EROFS/i.test(text))
    return "The disk cannot be written: nothing was accepted. Check it and send it again.";
  return undefined;
}

/** Says what is wrong with a database file in words that help. */
export function unusable(path: string, error: unknown): UserError {
  const text = messageOf(error);
  const remedy = /not a database|malformed|corrupt/i.test(text)
    ? 'It is damaged. Move it away and run "io doctor", or put back a copy named io.db.before-….bak from the same folder.'
    : /full/i.test(text)
      ? "The disk is full. Free some space and start again; nothing that was acknowledged is lost."
      : /readonly|read-only|unable to open|permission/i.test(text)
        ? "It cannot be written. Check the owner and mode of the folder and the file, and that the disk is not read-only."
        : `(${codeOf(error) ?? "SQLite"})`;
  return new UserError(`${path}: ${text}. ${remedy}`, { cause: error });
}

/** Brings the tables up to date. Several processes may want to at once: whoever comes second finds it done. */
function migrate(db: Database, path: string, migrations: readonly Migration[]): void {
  const first = missingIn(db, path, migrations);
  if (first.pending.length === 0) return;
  if (first.applied > 0 && path !== ":memory:") backUp(db, `${path}.before-${first.pending[0]!.name}.bak`);
  db.exec("BEGIN IMMEDIATE");
  try {
    db.exec("CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL) WITHOUT ROWID");
    const remember = db.prepare("INSERT INTO migrations (name, applied_at) VALUES (?, ?)");
    for (const migration of missingIn(db, path, migrations).pending) {
      db.exec(migration.sql);
      remember.run(migration.name, new Date().toISOString());
    }
    db.exec("COMMIT");
  } catch (error) {
    db.exec("ROLLBACK");
    throw error;
  }
}

function missingIn(db: Database, path: string, migrations: readonly Migration[]): { applied: number; pending: Migration[] } {
  const isNew = db.prepare("SELECT name FROM sqlite_master WHERE name = 'migrations'").get() === undefined;
  const rows = isNew ? [] : (db.prepare("SELECT name FROM migrations").all() as { name: string }[]);
  const applied = new Set(rows.map((row) => row.name));
  const known = new Set(migrations.map((migration) => migration.name));
  const unknown = [...applied].filter((name) => !known.has(name));
  if (unknown.length > 0) {
    throw new UserError(
      `${path}: was written by a newer IO (it has ${unknown.join(", ")}). Install that version or a later one; the file was not touched.`,
    );
  }
  return { applied: applied.size, pending: migrations.filter((migration) => !applied.has(migration.name)) };
}

/** Tries again for as long as another process holds the file: turning on the write-ahead log does not wait by itself. */
function patiently(work: () => void): void {
  const end = Date.now() + BUSY_MS;
  for (;;) {
    try {
      work();
      return;
    } catch (error) {
      if (!isBusy(error) || Date.now() > end) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
    }
  }
}

function backUp(db: Database, target: string): void {
  const own = `${target}.${process.pid}`;
  rmSync(own, { force: true });
  db.prepare("VACUUM INTO ?").run(own);
  chmodSync(own, 0o600);
  renameSync(own, target);
}
