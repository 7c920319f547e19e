import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import type { ModelCall, Spender } from "../protocol/usage.ts";
import { MIGRATIONS } from "./migrations.ts";
import { openStore } from "./open.ts";
import { createUsageLog } from "./usage.ts";

/** Records calls made outside the daemon. Does nothing if the database has another version or the home is missing. */
export function recordAside(path: string, spender: Spender, calls: readonly ModelCall[]): void {
  if (calls.length === 0 || !existsSync(dirname(path)) || (existsSync(path) && !isCurrent(path))) return;
  const store = openStore(path);
  try {
    const usage = createUsageLog(store);
    for (const call of calls) usage.record(spender, call);
  } finally {
    store.close();
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
