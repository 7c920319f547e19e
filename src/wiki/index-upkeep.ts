import type { Database } from "../store/transactions.ts";
import type { Statements } from "./page-statements.ts";
import { UNCOUNTED } from "./trigrams.ts";

const FIRST_COUNT = 1_000;
const MERGED_PAGES = 250;
const FREED_PAGES = 500;

/** Counts how many pages hold each trigram, one slice per step, so that nothing has to wait for it. */
export function* recountTrigrams(
  db: Database,
  statements: Statements,
  index: { count(): number; transaction<T>(work: () => T): T },
): Generator<void> {
  const pages = index.count();
  const counted = Number(statements.counted.get()?.value ?? FIRST_COUNT / 2);
  if (pages < counted * 2) return;
  const common: [string, number][] = [];
  // What stands in fewer pages is rare enough not to be remembered.
  const least = Math.max(2 * UNCOUNTED, pages / 5_000);
  for (let last = ""; ; ) {
    const rows = statements.terms.all(last);
    if (rows.length === 0) break;
    for (const row of rows) if (Number(row.doc) >= least) common.push([String(row.term), Number(row.doc)]);
    last = String(rows.at(-1)?.term);
    yield;
  }
  index.transaction(() => {
    db.exec("DELETE FROM gram");
    for (const [term, times] of common) statements.addGram.run(term, times);
    statements.setCounted.run(pages);
  });
}

/** After bulk indexing: merges the pieces of the index and frees their space, one slice per step. */
export function* tidyIndex(db: Database, statements: Statements): Generator<void> {
  const merged = (pages: number) => {
    const before = Number(statements.changes.get()?.n);
    statements.merge.run(pages);
    return Number(statements.changes.get()?.n) - before > 1;
  };
  // A negative number begins with everything, however few the pieces; the steps after it go on from there.
  for (let more = merged(-MERGED_PAGES); more; more = merged(MERGED_PAGES)) yield;
  while (Number(statements.free.get()?.freelist_count) > FREED_PAGES) {
    db.exec(`PRAGMA incremental_vacuum(${FREED_PAGES})`);
    yield;
  }
}
