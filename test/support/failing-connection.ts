import { DatabaseSync } from "@photostructure/sqlite";
import type { Database } from "../../src/store/transactions.ts";

/** An SQLite error that may also end the transaction. */
export interface Fault {
  name: string;
  errcode: number;
  message: string;
  /** True if SQLite rolls back the whole transaction, false if only the statement. */
  endsTransaction: boolean;
}

const ERRORS = [
  { name: "SQLITE_FULL", errcode: 13, message: "database or disk is full" },
  { name: "SQLITE_IOERR_WRITE", errcode: 778, message: "disk I/O error" },
  { name: "SQLITE_INTERRUPT", errcode: 9, message: "interrupted" },
  { name: "SQLITE_NOMEM", errcode: 7, message: "out of memory" },
];
export const FAULTS: readonly Fault[] = ERRORS.flatMap((error) =>
  [true, false].map((endsTransaction) => ({
    ...error,
    name: `${error.name}, ${endsTransaction ? "the transaction" : "the statement"} rolled back`,
    endsTransaction,
  })),
);

/** A real connection on which a chosen statement fails as it would in SQLite. */
export interface FailingConnection {
  connect(path: string): Database;
  /** Makes the n-th statement from now fail, counted from 1, and the ones after it, `span` in total. */
  failAt(statement: number, fault: Fault, span?: number): void;
  /** How many statements were run since the last `failAt` or `heal`. */
  count(): number;
  hasFailed(): boolean;
  heal(): void;
  /** Called after each statement that leaves no transaction open. */
  onRest?: (() => void) | undefined;
}

export function failingConnection(): FailingConnection {
  let seen = 0;
  let failed = false;
  let plan: { first: number; last: number; fault: Fault } | undefined;
  let real: InstanceType<typeof DatabaseSync>;

  const step = <T>(work: () => T): T => {
    seen += 1;
    if (plan && seen >= plan.first && seen <= plan.last) {
      const { errcode, message, endsTransaction } = plan.fault;
      failed = true;
      if (endsTransaction && real.isTransaction) real.exec("ROLLBACK");
      throw Object.assign(new Error(message), { code: "ERR_SQLITE_ERROR", errcode, errstr: message });
    }
    const result = work();
    if (!real.isTransaction) self.onRest?.();
    return result;
  };
  const arm = (to: typeof plan) => {
    plan = to;
    seen = 0;
    failed = false;
  };
  const self: FailingConnection = {
    connect(path) {
      real = new DatabaseSync(path);
      return {
        exec: (sql) => step(() => real.exec(sql)),
        prepare(sql) {
          const statement = real.prepare(sql);
          return {
            run: (...values) => step(() => statement.run(...values)),
            get: (...values) => step(() => statement.get(...values)),
            all: (...values) => step(() => statement.all(...values)),
            iterate: (...values) => step(() => statement.iterate(...values)),
          };
        },
        get isTransaction() {
          return real.isTransaction;
        },
        close: () => real.close(),
      };
    },
    failAt: (first, fault, span = 1) => arm({ first, last: first + span - 1, fault }),
    heal: () => arm(undefined),
    count: () => seen,
    hasFailed: () => failed,
  };
  return self;
}
