import { chmodSync, renameSync, rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { DatabaseSync } from "@photostructure/sqlite";
import { codeOf, messageOf, UserError } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { isBusy, isDiskFull, isTemporary } from "./faults.ts";
import { createFlusher } from "./flusher.ts";
import { MIGRATIONS, type Migration } from "./migrations.ts";
import { createTransactions, type Database } from "./transactions.ts";

export type { Database } from "./transactions.ts";

/** One SQLite file with three kinds of write. */
export interface Store {
  readonly db: Database;
  /** Runs work atomically; a nested transaction joins the outer one. On disk when this returns. */
  transaction<T>(work: () => T): T;
  /** Runs after the surrounding transaction commits, not if it rolls back; immediately outside of one. Errors are logged. */
  afterCommit(work: () => void): void;
  /** Runs after the surrounding transaction rolls back. */
  afterRollback(work: () => void): void;
  /** A transaction that does not wait for the disk: it survives a crash, but not a power cut. */
  soft<T>(work: () => T): T;
  /** The same, but starts a flush in the background: for data that nobody outside relies on yet. */
  soon<T>(work: () => T): T;
  close(): void;
}

export interface StoreDeps {
  migrations?: readonly Migration[];
  /** Opens the file; tests inject a failing connection. */
  connect?: (path: string) => Database;
  log?: Pick<Log, "warn" | "error">;
  /** Called when a write failed because the disk is full. */
  onFull?: () => void;
  /** How long a write waits for a lock held by another program; this blocks the process. */
  lockWaitMs?: number;
}

/** Too short to notice. After a timed-out wait, writes fail immediately for `HELD_MS`. */
const LOCK_WAIT_MS = 50;
const HELD_MS = 1_000;
/** How long a start waits for a lock held by another program. */
const OPENING_WAIT_MS = 5_000;
/** The delay before a write is retried. */
const RETRY_MS = 100;

export function openStore(path: string, deps: StoreDeps = {}): Store {
  const { migrations = MIGRATIONS, connect = openFile, log, onFull, lockWaitMs = LOCK_WAIT_MS } = deps;
  const connection = connect(path);
  try {
    connection.exec(`PRAGMA busy_timeout = ${OPENING_WAIT_MS}`);
    retryWhileLocked(() => connection.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;"));
    retryWhileLocked(() => migrate(connection, path, migrations));
  } catch (error) {
    connection.close();
    throw error instanceof UserError ? error : unusable(path, error);
  }
  if (path !== ":memory:") chmodSync(path, 0o600);

  // Set the mode before each write that needs it, so that a failed reset cannot weaken a later write.
  const current = { synchronous: "FULL", busy_timeout: OPENING_WAIT_MS };
  let heldAt = Number.NEGATIVE_INFINITY;
  const prepare = (synchronous: "FULL" | "NORMAL" = "FULL") => {
    const busy_timeout = performance.now() - heldAt < HELD_MS ? 0 : lockWaitMs;
    for (const [name, value] of Object.entries({ synchronous, busy_timeout })) {
      if (current[name as keyof typeof current] === value) continue;
      connection.exec(`PRAGMA ${name} = ${value}`);
      Object.assign(current, { [name]: value });
    }
  };
  const { db, transaction, afterCommit, afterRollback } = createTransactions(connection, {
    prepare,
    onCallbackFailure: (error) => log?.error("a callback after a transaction failed", { error }),
    onFailure(error) {
      if (isDiskFull(error)) onFull?.();
      if (isBusy(error)) heldAt = performance.now();
    },
  });
  const flusher = createFlusher(path, { checkpoint: () => checkpoint(connection), log });
  const soft: Store["soft"] = (work) => transaction(work, () => prepare("NORMAL"));
  return {
    db,
    transaction: (work) => transaction(work),
    afterCommit,
    afterRollback,
    soft,
    soon(work) {
      // After a failed flush, writes wait for the disk again.
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

/** Checkpoints the write-ahead log into the database file, and waits for the disk. */
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

/** Retries while the database cannot be written, until `hasGivenUp`, without blocking other work. */
export async function whenFree<T>(work: () => T, hasGivenUp: (error: unknown) => boolean = () => false): Promise<T> {
  for (;;) {
    try {
      return work();
    } catch (error) {
      if (!isTemporary(error) || hasGivenUp(error)) throw error;
      await sleep(RETRY_MS);
    }
  }
}

/** Retries only while another program has the database locked. */
export function whenNotHeld<T>(work: () => T, hasGivenUp: () => boolean): Promise<T> {
  return whenFree(work, (error) => !isBusy(error) || hasGivenUp());
}

/** Turns a database error into a message with a remedy. */
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

/** Applies pending migrations. Safe if several processes start at once: the second finds nothing to do. */
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
    // On a full disk SQLite has already rolled back.
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

/** Retries while another process has the file locked: switching to WAL ignores the busy timeout. */
function retryWhileLocked(work: () => void): void {
  const end = Date.now() + OPENING_WAIT_MS;
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
    // Delete a partial copy: each start would leave another one on the full disk.
    rmSync(own, { force: true });
    throw error;
  }
}
