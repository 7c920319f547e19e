import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import type { ModelCall, Spender } from "../protocol/usage.ts";
import { takeLock } from "./lock.ts";
import { MIGRATIONS } from "./migrations.ts";
import { openStore } from "./open.ts";
import { createUsageLog } from "./usage.ts";

/**
 * Records calls that were made while no daemon has the data folder. Does nothing if the database has another version or the home
 * is missing.
 */
export function recordAside(paths: { database: string; lock: string }, spender: Spender, calls: readonly ModelCall[]): void {
  const { database, lock } = paths;
  if (calls.length === 0 || !existsSync(dirname(database))) return;
  const taken = takeLock(lock);
  if (!taken) throw new Error("another process has the data folder");
  try {
    if (existsSync(database) && !isCurrent(database)) return;
    const store = openStore(database);
    try {
      const usage = createUsageLog(store);
      for (const call of calls) usage.record(spender, call);
    } finally {
      store.close();
    }
  } finally {
    taken.release();
  }
}

function isCurrent(path: string): boolean {
  const db = new DatabaseSync(path, { readOnly: true });
  try {
    return db.prepare("SELECT 1 FROM migrations WHERE name = ?").get(MIGRATIONS.at(-1)!.name) !== undefined;
  } finally {
    db.close();
  }
}
