import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { expect, onTestFinished, test } from "vitest";
import type { Event } from "../../src/protocol/events.ts";
import { createEventLog } from "../../src/store/events.ts";
import { storeTrouble } from "../../src/store/faults.ts";
import { createHub } from "../../src/store/hub.ts";
import type { Migration } from "../../src/store/migrations.ts";
import { openStore, type Store, type StoreDeps } from "../../src/store/open.ts";
import { quietLog } from "../support/engine.ts";
import { FAULTS, failingConnection } from "../support/failing-connection.ts";
import { temporaryFolder } from "../support/home.ts";
import { until } from "../support/until.ts";

const NOTES: Migration = { name: "a-notes", sql: "CREATE TABLE notes (text TEXT NOT NULL)" };
const LARGE = "x".repeat(200_000);
const WAYS = ["transaction", "soft", "soon"] as const;

function openNotes(deps: StoreDeps = {}) {
  const path = join(temporaryFolder(), "io.db");
  const store = openStore(path, { migrations: [NOTES], ...deps });
  onTestFinished(() => store.close());
  const insert = store.db.prepare("INSERT INTO notes VALUES (?)");
  const rows = store.db.prepare("SELECT substr(text, 1, 20) AS text FROM notes");
  return {
    ...{ path, store },
    add: (text: string) => insert.run(text),
    notes: () => (rows.all() as { text: string }[]).map(({ text }) => text),
  };
}

/** Stops the database from growing: SQLite returns a real SQLITE_FULL, which ends the transaction. */
function fill({ db }: Store): () => void {
  const { page_count } = db.prepare("PRAGMA page_count").get() as { page_count: number };
  db.exec(`PRAGMA max_page_count = ${page_count}`);
  return () => db.exec("PRAGMA max_page_count = 1000000");
}

function logged() {
  const lines: string[] = [];
  const note = (message: string) => void lines.push(message);
  return { lines, log: { ...quietLog, warn: note, error: note } };
}

test.each(WAYS)("a full disk leaves nothing of a %s, even if the work ignores the error", (way) => {
  const { store, add, notes } = openNotes();
  const free = fill(store);
  const work = () => {
    add("before");
    try {
      add(LARGE);
    } catch {
      // Ignoring this error must not commit the rest separately.
    }
    add("after");
  };
  expect(() => store[way](work)).toThrow(/disk is full/);
  expect(notes()).toEqual([]);
  free();
  store[way](work);
  expect(notes()).toEqual(["before", "x".repeat(20), "after"]);
});

test("a failed nested transaction rolls back the outer one, whoever catches the error", () => {
  const { store, add, notes } = openNotes();
  const told: string[] = [];
  expect(() =>
    store.transaction(() => {
      add("outer");
      store.afterCommit(() => told.push("committed"));
      store.afterRollback(() => told.push("rolled back"));
      try {
        store.transaction(() => {
          add("inner");
          throw new Error("half done");
        });
      } catch {
        // The inner transaction has written half of an atomic change.
      }
      add("later");
    }),
  ).toThrow("half done");
  expect([notes(), told]).toEqual([[], ["rolled back"]]);
});

test("a failed rollback does not block the next transaction", () => {
  const connection = failingConnection();
  const { store, add, notes } = openNotes({ connect: connection.connect });
  connection.failAt(2, FAULTS.find(({ endsTransaction }) => !endsTransaction)!, 2);
  expect(() => store.transaction(() => add("lost"))).toThrow();
  connection.heal();
  store.transaction(() => add("kept"));
  const other = new DatabaseSync(store.db.prepare("PRAGMA database_list").get()!.file as string);
  onTestFinished(() => other.close());
  expect(notes()).toEqual(["kept"]);
  expect(other.prepare("SELECT text FROM notes").all()).toEqual([{ text: "kept" }]);
});

test("a callback that throws after the commit affects neither the commit nor other callbacks, and is logged once", () => {
  const { lines, log } = logged();
  const { store, add, notes } = openNotes({ log });
  const told: string[] = [];
  const result = store.transaction(() => {
    add("kept");
    store.afterCommit(() => told.push("first"));
    store.afterCommit(() => {
      throw new Error("a callback");
    });
    store.afterCommit(() => told.push("last"));
    return "done";
  });
  store.afterCommit(() => {
    throw new Error("outside of a transaction");
  });
  expect([result, notes(), told]).toEqual(["done", ["kept"], ["first", "last"]]);
  expect(lines).toEqual(["a callback after a transaction failed", "a callback after a transaction failed"]);
});

test("a write in a callback after a soft commit waits for the disk as usual", () => {
  const { store, add } = openNotes();
  const level = () => (store.db.prepare("PRAGMA synchronous").get() as { synchronous: number }).synchronous;
  const levels: number[] = [];
  store.soft(() => {
    levels.push(level());
    store.afterCommit(() => store.transaction(() => levels.push(level())));
    add("soft");
  });
  expect(levels).toEqual([1, 2]);
});

test("a setting that could not be reset does not weaken later writes", () => {
  const connection = failingConnection();
  const { store, add } = openNotes({ connect: connection.connect });
  const levels: number[] = [];
  const note = () => levels.push((store.db.prepare("PRAGMA synchronous").get() as { synchronous: number }).synchronous);
  store.soft(() => add("soft"));
  for (const fault of FAULTS) {
    connection.failAt(1, fault);
    expect(() => store.transaction(note)).toThrow();
    connection.heal();
    store.transaction(note);
    store.soft(() => add("soft"));
  }
  expect(new Set(levels)).toEqual(new Set([2]));
});

test("after a failed flush IO checkpoints, and until that succeeds every `soon` write waits for the disk", async () => {
  const { lines, log } = logged();
  const { store, add, path } = openNotes({ log });
  store.db.exec("PRAGMA wal_checkpoint(FULL)");
  const real = fs.fdatasync;
  onTestFinished(() => {
    fs.fdatasync = real;
    syncBuiltinESMExports();
  });
  fs.fdatasync = ((_file: number, done: (error: Error | null) => void) =>
    setImmediate(() => done(Object.assign(new Error("EIO: i/o error, fdatasync"), { code: "EIO" })))) as unknown as typeof real;
  syncBuiltinESMExports();
  const inFile = () => {
    // The file without its write-ahead log: only what was checkpointed.
    const copy = join(temporaryFolder(), "copy.db");
    fs.copyFileSync(path, copy);
    const db = new DatabaseSync(copy, { readOnly: true });
    const { count } = db.prepare("SELECT count(*) AS count FROM notes").get() as { count: number };
    db.close();
    return count;
  };
  store.soon(() => add("one"));
  await until("the checkpoint", () => inFile() === 1);

  const reader = new DatabaseSync(path);
  reader.exec("BEGIN; SELECT count(*) FROM notes");
  const level = () => (store.db.prepare("PRAGMA synchronous").get() as { synchronous: number }).synchronous;
  store.soon(() => add("two"));
  await until("the failed checkpoint", () => lines.some((line) => line.includes("not on disk yet")));
  expect(store.soon(level)).toBe(2);
  reader.exec("ROLLBACK");
  reader.close();
  await until("what was owed", () => inFile() === 2, 10_000);
  expect(store.soon(level)).toBe(1);
});

test("events are published in the order they were written, including those of callbacks after the commit, and not after a rollback", () => {
  const store = openStore(join(temporaryFolder(), "io.db"));
  const hub = createHub({ events: createEventLog(store), log: quietLog });
  onTestFinished(() => {
    hub.close();
    store.close();
  });
  const told: Event[] = [];
  hub.subscribe((event) => told.push(event));
  const say = (path: string) => hub.emit({ type: "page.written", data: { path, title: path } });
  store.transaction(() => {
    store.afterCommit(() => say("second"));
    store.afterCommit(() => store.transaction(() => say("third")));
    say("first");
  });
  expect(() =>
    store.transaction(() => {
      say("never");
      throw new Error("rolled back");
    }),
  ).toThrow("rolled back");
  say("last");
  expect(told.map(({ data }) => (data as { path: string }).path)).toEqual(["first", "second", "third", "last"]);
  expect(told.map(({ id }) => id)).toEqual([...told.map(({ id }) => id)].sort((a, b) => a - b));
});

test("an event that cannot be stored fails its transaction; earlier events are published once when there is room", async () => {
  const path = join(temporaryFolder(), "io.db");
  const store = openStore(path);
  const hub = createHub({ events: createEventLog(store), log: quietLog });
  onTestFinished(() => {
    hub.close();
    store.close();
  });
  const told: Event[] = [];
  hub.subscribe((event) => told.push(event));
  const delta = (text: string) => hub.emit({ type: "message.delta", conversation: "main", data: { id: "m_1", text } });
  delta("first");
  delta("held");
  const count = () => (store.db.prepare("SELECT count(*) AS count FROM io_state").get() as { count: number }).count;
  const before = count();
  const free = fill(store);
  let failure: unknown;
  try {
    store.transaction(() => {
      store.db.prepare("INSERT INTO io_state (key, value) VALUES ('a', 'b')").run();
      hub.emit({ type: "page.written", data: { path: "pages/a.md", title: LARGE } });
    });
  } catch (error) {
    failure = error;
  }
  expect(storeTrouble(failure)).toMatchObject({ code: "disk_full", trouble: "unavailable" });
  expect(count()).toBe(before);
  hub.emit({ type: "page.written", data: { path: "pages/b.md", title: LARGE } });
  free();
  await until("what was held", () => told.length === 3);
  expect(told.map(({ type }) => type)).toEqual(["message.delta", "message.delta", "page.written"]);
  expect(told.map(({ id }) => id)).toEqual([1, 2, 3]);
  expect(store.db.prepare("SELECT count(*) AS count FROM events").get()).toEqual({ count: 3 });
});
