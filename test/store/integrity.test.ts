import { closeSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { expect, test } from "vitest";
import { findFaults } from "../../src/store/integrity.ts";
import { temporaryFolder } from "../support/home.ts";

const PAGE_BYTES = 4_096;

/** A database with an index, large enough that reading it takes a while. */
function makeDatabase(rows: number): string {
  const file = join(temporaryFolder(), "io.db");
  const db = new DatabaseSync(file);
  db.exec(`CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT); CREATE INDEX by_text ON notes (text);
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${rows})
    INSERT INTO notes (text) SELECT hex(randomblob(16)) FROM n`);
  db.close();
  return file;
}

test("an intact database is checked without blocking the event loop", async () => {
  const file = makeDatabase(150_000);
  let isRead = false;
  const faults = findFaults(file).finally(() => {
    isRead = true;
  });
  let turns = 0;
  while (!isRead) {
    await new Promise((next) => setTimeout(next, 1));
    turns += 1;
  }
  expect(await faults).toEqual([]);
  // A check in this thread would allow only one.
  expect(turns).toBeGreaterThan(10);
});

test("at most three faults of a damaged database are reported", async () => {
  const file = makeDatabase(20_000);
  const opened = openSync(file, "r+");
  for (const page of [5, 9, 13, 17, 21, 25]) writeSync(opened, Buffer.alloc(PAGE_BYTES, 7), 0, PAGE_BYTES, page * PAGE_BYTES);
  closeSync(opened);
  const faults = await findFaults(file);
  expect(faults?.length).toBeGreaterThan(0);
  expect(faults?.length).toBeLessThanOrEqual(3);
});

test("the check ends when it is aborted", async () => {
  const stop = new AbortController();
  const faults = findFaults(makeDatabase(20_000), stop.signal);
  stop.abort(new Error("interrupted"));
  await expect(faults).rejects.toThrow("interrupted");
});
