import { DatabaseSync } from "@photostructure/sqlite";
import { offThread } from "../lib/off-thread.ts";

/** Reading a whole database takes about a second for each 500 MB. */
const DEADLINE_MS = 120_000;
const MOST_FAULTS = 3;

/** The faults of a database file; empty if it is intact, undefined if the check timed out. */
export function findFaults(file: string, signal?: AbortSignal): Promise<string[] | undefined> {
  return offThread<string[]>("store/integrity-worker.js", file, { deadlineMs: DEADLINE_MS, ...(signal && { signal }) });
}

/** The same in this thread, which blocks it. */
export function findFaultsHere(file: string): string[] {
  const db = new DatabaseSync(file, { readOnly: true });
  try {
    const rows = db.prepare(`PRAGMA integrity_check(${MOST_FAULTS})`).all() as { integrity_check: string }[];
    return rows.map((row) => row.integrity_check).filter((fault) => fault !== "ok");
  } finally {
    db.close();
  }
}
