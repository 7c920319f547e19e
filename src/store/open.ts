import { chmodSync, renameSync, rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { DatabaseSync } from "@photostructure/sqlite";
import { codeOf, messageOf, UserError } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { BUSY_MS, isBusy, isDiskFull, isTemporary } from "./faults.ts";
import { createFlusher } from "./flusher.ts";
import { MIGRATIONS, type Migration } from "./migrations.ts";
import { createTransactions, type Database } from "./transactions.ts";

export type { Database } from "./transactions.ts";

/** One SQLite file, and the three ways of writing to it. */
export interface Store {
  readonly db: Database;
  /** Runs it whole or not at all; a transaction inside another is part of it. On disk when this returns. */
  transaction<T>(work: () => T): T;
  /** Runs once the transaction around this is kept, and not at all if it is not; at once where there is none. What it throws is logged. */
  afterCommit(work: () => void): void;
  /** Runs once the transaction around this is rolled back. */
  afterRollback(work: () => void): void;
  /** A transaction that does not wait for the disk: for what may be lost in a power cut, though not in a crash. */
  soft<T>(work: () => T, options?: SoftOptions): T;
  /** The same, and has it brought to the disk meanwhile: for what should last, and which nobody outside counts on yet. */
  soon<T>(work: () => T): T;
  close(): void;
}

export interface SoftOptions {
  /** For what can be done later: where another process holds the file this throws at once (see `isBusy`) instead of waiting. */
  atOnce?: boolean;
}

export interface StoreDeps {
  migrations?: readonly Migration[];
  /** Opens the file; a test puts a connection here that fails. */
  connect?: (path: string) => Database;
  log?: Pick<Log, "warn" | "error">;
  /** Told whenever the disk had no room for a write. */
  onFull?: () => void;
}

/** How long to leave it alone before asking again. */
const RETRY_MS = 250;

export function openStore(path: string, { migrations = MIGRATIONS, connect = openFile, log, onFull }: StoreDeps = {}): Store {
  const connection = connect(path);
  try {
    connection.exec(`PRAGMA busy_timeout = ${BUSY_MS}`);
    patiently(() => connection.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;"));
    patiently(() => migrate(connection, path, migrations));
  } catch (error) {
    connection.close();
    throw error instanceof UserError ? error : unusable(path, error);
  }
  if (path !== ":memory:") chmodSync(path, 0o600);

  // Set before each write that needs another value, so that a failure to set one back weakens no later promise.
  const current = { synchronous: "FULL", busy_timeout: BUSY_MS };
  const prepare = (synchronous: "FULL" | "NORMAL" = "FULL", busy_timeout = BUSY_MS) => {
    for (const [name, value] of Object.entries({ synchronous, busy_timeout })) {
      if (current[name as keyof typeof current] === value) continue;
      connection.exec(`PRAGMA ${name} = ${value}`);
      Object.assign(current, { [name]: value });
    }
  };
  const { db, transaction, afterCommit, afterRollback } = createTransactions(connection, {
    prepare,
    onCallbackFailure: (error) => log?.error("what follows a transaction failed", { error }),
    onFailure: (error) => void (isDiskFull(error) && onFull?.()),
  });
  const flusher = createFlusher(path, { checkpoint: () => checkpoint(connection), log });
  const soft: Store["soft"] = (work, { atOnce = false } = {}) => transaction(work, () => prepare("NORMAL", atOnce ? 0 : BUSY_MS));
  return {
    db,
    transaction: (work) => transaction(work),
    afterCommit,
    afterRollback,
    soft,
    soon(work) {
      // What could not be flushed is not followed by more of its kind.
      if (flusher.isBehind()) return transaction(work);
      return soft(() => {
        afterCommit(flusher.flush);
        return work();
      });
    },
    close() {
      flusher.close();
      connection.close();
    },
  };
}

/** Brings everything that was committed so far into the database file itself, and waits for the disk. */
function checkpoint(connection: Database): void {
  connection.exec("PRAGMA synchronous = FULL");
  const { busy, log, checkpointed } = connection.prepare("PRAGMA wal_checkpoint(PASSIVE)").get() as Record<string, number>;
  if (busy !== 0 || log !== checkpointed)
    throw new Error("the write-ahead log could not be emptied: another process reads from it");
}

function openFile(path: string): Database {
  try {
    return new DatabaseSync(path);
  } catch (error) {
    throw unusable(path, error);
  }
}

/** Tries again for as long as the database cannot be written and nobody gives up, without keeping anybody else from working. */
export async function whenFree<T>(work: () => T, hasGivenUp = () => false): Promise<T> {
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!isTemporary(error) || hasGivenUp()) throw error;
      await sleep(RETRY_MS);
    }
  }
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
    // A full disk has rolled it back already.
    if (db.isTransaction) db.exec("ROLLBACK");
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
  try {
    db.prepare("VACUUM INTO ?").run(own);
    chmodSync(own, 0o600);
    renameSync(own, target);
  } catch (error) {
    // Half a copy would take up the room that is missing, one more with every start.
    rmSync(own, { force: true });
    throw error;
  }
}
