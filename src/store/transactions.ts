import type { DatabaseSync } from "@photostructure/sqlite";

type Sqlite = InstanceType<typeof DatabaseSync>;
export type Statement = Pick<ReturnType<Sqlite["prepare"]>, "run" | "get" | "all" | "iterate">;

/** The part of a SQLite connection that IO uses. */
export interface Database extends Pick<Sqlite, "exec" | "isTransaction" | "close"> {
  prepare(sql: string): Statement;
}

export interface TransactionsDeps {
  /** Called before a transaction begins, unless it brings its own, and before a statement outside one. */
  prepare?: () => void;
  /** Called when a callback failed after a transaction had ended. */
  onCallbackFailure?: (error: unknown) => void;
  /** Called with the reason when a transaction, or a statement outside one, failed. */
  onFailure?: (error: unknown) => void;
}

interface Open {
  /** Its first error, after which it does nothing more and will be rolled back. */
  fault?: { error: unknown };
  afterCommit: (() => void)[];
  afterRollback: (() => void)[];
}

/**
 * Atomic transactions. SQLite ends a transaction by itself when the disk is full, on an I/O error, an interrupt or lack of
 * memory, and would then commit every later statement on its own. So the first error dooms the transaction, whoever
 * catches it: later statements throw it again, and so does the end of the transaction.
 */
export function createTransactions(connection: Database, deps: TransactionsDeps = {}) {
  const { prepare = () => {}, onCallbackFailure = () => {}, onFailure = () => {} } = deps;
  let open: Open | undefined;

  const told = <T>(work: () => T): T => {
    try {
      return work();
    } catch (error) {
      onFailure(error);
      throw error;
    }
  };
  const guarded = <T>(work: () => T): T => {
    if (open) return doomedBy(open, work);
    return told(() => {
      leaveNoneOpen(connection);
      prepare();
      return work();
    });
  };
  const call = (callback: () => void): void => {
    try {
      callback();
    } catch (error) {
      onCallbackFailure(error);
    }
  };

  const db: Database = {
    exec: (sql) => guarded(() => connection.exec(sql)),
    // A statement is compiled when it is first used: a start creates hundreds that it does not run.
    prepare(sql) {
      let compiled: Statement | undefined;
      const statement = () => {
        compiled ??= connection.prepare(sql);
        return compiled;
      };
      return {
        run: (...values) => guarded(() => statement().run(...values)),
        get: (...values) => guarded(() => statement().get(...values)),
        all: (...values) => guarded(() => statement().all(...values)),
        *iterate(...values) {
          const rows = guarded(() => statement().iterate(...values));
          try {
            for (let row = guarded(() => rows.next()); !row.done; row = guarded(() => rows.next())) yield row.value;
          } finally {
            rows.return?.();
          }
        },
      };
    },
    close: () => connection.close(),
    get isTransaction() {
      return open !== undefined;
    },
  };

  /** Runs work atomically; a nested call joins the outer transaction. */
  function transaction<T>(work: () => T, prepareOwn = prepare): T {
    if (open) return doomedBy(open, work);
    told(() => {
      leaveNoneOpen(connection);
      prepareOwn();
      connection.exec("BEGIN IMMEDIATE");
    });
    const own: Open = { afterCommit: [], afterRollback: [] };
    open = own;
    let result: T;
    try {
      result = work();
      if (own.fault) throw own.fault.error;
      connection.exec("COMMIT");
    } catch (error) {
      rollBack(connection);
      open = undefined;
      own.afterRollback.forEach(call);
      onFailure(error);
      throw error;
    }
    open = undefined;
    own.afterCommit.forEach(call);
    return result;
  }

  return {
    db,
    transaction,
    /** Runs after the surrounding transaction commits, and not if it rolls back; immediately outside of one. */
    afterCommit(callback: () => void): void {
      if (open) open.afterCommit.push(callback);
      else call(callback);
    },
    /** Runs after the surrounding transaction rolls back; never outside of one. */
    afterRollback: (callback: () => void): void => void open?.afterRollback.push(callback),
  };
}

function doomedBy<T>(open: Open, work: () => T): T {
  if (open.fault) throw open.fault.error;
  try {
    return work();
  } catch (error) {
    open.fault ??= { error };
    throw error;
  }
}

/** A transaction that could not be rolled back is still open, and would absorb everything from here on. */
function leaveNoneOpen(connection: Database): void {
  if (connection.isTransaction) connection.exec("ROLLBACK");
}

function rollBack(connection: Database): void {
  try {
    leaveNoneOpen(connection);
  } catch {
    // The original error is reported; the next statement tries to roll back again.
  }
}
