import type { Database } from "../store/transactions.ts";
import type { Statements } from "./page-statements.ts";
import { UNCOUNTED } from "./trigrams.ts";

const FIRST_RECOUNT = 1_000;
const MERGED_PAGES = 250;
const FREED_PAGES = 500;

/** Counts the pages that contain each trigram, one short slice per step. */
export function* recountTrigrams(
  db: Database,
  statements: Statements,
  index: { count(): number; transaction<T>(work: () => T): T },
): Generator<void> {
  const pages = index.count();
  const counted = Number(statements.counted.get()?.value ?? FIRST_RECOUNT / 2);
  if (pages < counted * 2) return;
  const common: [string, number][] = [];
  // Trigrams in fewer pages count as rare and are not stored.
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

/** After bulk indexing: merges the index segments and frees their space, one slice per step. */
export function* tidyIndex(db: Database, statements: Statements): Generator<void> {
  const merged = (pages: number) => {
    const before = Number(statements.changes.get()?.n);
    statements.merge.run(pages);
    return Number(statements.changes.get()?.n) - before > 1;
  };
  // A negative number starts a merge of all segments; later steps continue it.
  for (let more = merged(-MERGED_PAGES); more; more = merged(MERGED_PAGES)) yield;
  while (Number(statements.free.get()?.freelist_count) > FREED_PAGES) {
    db.exec(`PRAGMA incremental_vacuum(${FREED_PAGES})`);
    yield;
  }
}
