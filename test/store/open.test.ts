import { spawn } from "node:child_process";
import fs, { existsSync, readdirSync, readFileSync, readlinkSync, realpathSync, statSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { packageRoot } from "../../src/lib/package-root.ts";
import { MIGRATIONS, type Migration } from "../../src/store/migrations.ts";
import { openStore } from "../../src/store/open.ts";
import { temporaryFolder } from "../support/home.ts";
import { smallDisk } from "../support/small-disk.ts";
import { until } from "../support/until.ts";

const FIRST: Migration = { name: "a-first", sql: "CREATE TABLE notes (text TEXT NOT NULL)" };
const SECOND: Migration = { name: "b-second", sql: "ALTER TABLE notes ADD COLUMN author TEXT" };
const BROKEN: Migration = { name: "c-broken", sql: "CREATE TABLE half (x); INSERT INTO nowhere VALUES (1)" };

const pathOf = () => join(temporaryFolder(), "io.db");
const tablesOf = (path: string, migrations: readonly Migration[]) => {
  const store = openStore(path, { migrations });
  const rows = store.db.prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").all() as { name: string }[];
  store.close();
  return rows.map(({ name }) => name);
};

test("a new database has every table, is readable only by its owner, and makes no empty backup", () => {
  const path = pathOf();
  const tables = tablesOf(path, MIGRATIONS);
  for (const name of ["io_state", "messages", "events", "tool_calls", "usage", "conversation_log", "squads", "agent_tasks"])
    expect(tables).toContain(name);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(existsSync(`${path}.before-${MIGRATIONS[0]!.name}.bak`)).toBe(false);
});

test("a migration keeps the data, runs once, and leaves a backup", () => {
  const path = pathOf();
  const before = openStore(path, { migrations: [FIRST] });
  before.db.exec("INSERT INTO notes VALUES ('kept')");
  before.close();

  const after = openStore(path, { migrations: [FIRST, SECOND] });
  expect(after.db.prepare("SELECT text, author FROM notes").all()).toEqual([{ text: "kept", author: null }]);
  after.close();
  openStore(path, { migrations: [FIRST, SECOND] }).close();

  const backup = openStore(`${path}.before-b-second.bak`, { migrations: [FIRST] });
  expect(backup.db.prepare("SELECT * FROM notes").all()).toEqual([{ text: "kept" }]);
  backup.close();
  expect(statSync(`${path}.before-b-second.bak`).mode & 0o777).toBe(0o600);
});

test("a backup that does not fit on the disk is removed, and the data stays unchanged", async () => {
  const disk = await smallDisk(6);
  const path = join(disk.folder, "io.db");
  const before = openStore(path, { migrations: [FIRST] });
  before.db.exec("INSERT INTO notes VALUES (hex(zeroblob(2000000)))");
  before.close();
  const files = readdirSync(disk.folder);
  for (let start = 0; start < 2; start += 1) {
    expect(() => openStore(path, { migrations: [FIRST, SECOND] })).toThrow(/The disk is full\. Free some space/);
    expect(readdirSync(disk.folder)).toEqual(files);
  }
  const after = openStore(path, { migrations: [FIRST] });
  expect(after.db.prepare("SELECT length(text) AS length FROM notes").get()).toEqual({ length: 4_000_000 });
  after.close();
});

test("a failed migration rolls back the others of the same start", () => {
  const path = pathOf();
  openStore(path, { migrations: [FIRST] }).close();
  expect(() => openStore(path, { migrations: [FIRST, SECOND, BROKEN] })).toThrow(/nowhere/);
  const store = openStore(path, { migrations: [FIRST] });
  expect(store.db.prepare("SELECT name FROM migrations").all()).toEqual([{ name: "a-first" }]);
  expect(store.db.prepare("SELECT name FROM pragma_table_info('notes')").all()).toEqual([{ name: "text" }]);
  store.close();
  expect(tablesOf(path, [FIRST])).not.toContain("half");
});

test("a database of a newer version is refused with a message and not changed", () => {
  const path = pathOf();
  openStore(path, { migrations: [FIRST, SECOND] }).close();
  const bytes = readFileSync(path);
  expect(() => openStore(path, { migrations: [FIRST] })).toThrow(/written by a newer IO \(it has b-second\)/);
  expect(readFileSync(path).equals(bytes)).toBe(true);
});

test("a damaged file is refused with a remedy", () => {
  const path = pathOf();
  writeFileSync(path, "this is not a database at all, but long enough to be looked at".repeat(20));
  expect(() => openStore(path)).toThrow(/damaged.*io doctor/);
});

test("a transaction that throws is rolled back, and a nested one is part of the outer one", () => {
  const store = openStore(":memory:", { migrations: [FIRST] });
  const add = store.db.prepare("INSERT INTO notes VALUES (?)");
  expect(() =>
    store.transaction(() => {
      store.transaction(() => add.run("inner"));
      store.soft(() => add.run("soft"));
      throw new Error("no");
    }),
  ).toThrow("no");
  expect(store.db.prepare("SELECT COUNT(*) AS count FROM notes").get()).toEqual({ count: 0 });
  store.soft(() => store.transaction(() => add.run("kept")));
  expect(store.db.prepare("SELECT text FROM notes").all()).toEqual([{ text: "kept" }]);
  expect(store.db.prepare("PRAGMA synchronous").get()).toEqual({ synchronous: 2 });
  store.close();
});

test("a `soon` write is visible immediately and flushed in the background", async () => {
  const path = pathOf();
  const store = openStore(path, { migrations: [FIRST] });
  const add = store.db.prepare("INSERT INTO notes VALUES (?)");
  const count = () => store.db.prepare("SELECT COUNT(*) AS count FROM notes").get();
  for (let at = 0; at < 100; at += 1) store.soon(() => add.run(`note ${at}`));
  expect(count()).toEqual({ count: 100 });
  expect(store.db.prepare("PRAGMA synchronous").get()).toEqual({ synchronous: 2 });
  // Closed during a flush.
  store.soon(() => add.run("the last"));
  store.close();
  const again = openStore(path, { migrations: [FIRST] });
  expect(again.db.prepare("SELECT COUNT(*) AS count FROM notes").get()).toEqual({ count: 101 });
  again.close();
  const memory = openStore(":memory:", { migrations: [FIRST] });
  memory.soon(() => memory.db.exec("INSERT INTO notes VALUES ('kept')"));
  memory.close();
});

test("a `soon` write is followed by a flush of the file that contains it", async () => {
  const path = pathOf();
  const store = openStore(path, { migrations: [FIRST] });
  const flushed: string[] = [];
  const real = fs.fdatasync;
  onTestFinished(() => {
    fs.fdatasync = real;
    syncBuiltinESMExports();
    store.close();
  });
  fs.fdatasync = ((file: number, done: (error: Error | null) => void) =>
    real(file, (error) => {
      flushed.push(`${readlinkSync(`/proc/self/fd/${file}`)} ${error}`);
      done(error);
    })) as typeof real;
  syncBuiltinESMExports();
  store.soft(() => store.db.exec("INSERT INTO notes VALUES ('later')"));
  store.soon(() => store.db.exec("INSERT INTO notes VALUES ('soon')"));
  await until("a flush", () => flushed.length > 0);
  expect(flushed).toEqual([`${realpathSync(path)}-wal null`]);
});

test("several processes can open a new database at the same time", { timeout: 180_000 }, async () => {
  for (let round = 0; round < 3; round += 1) {
    const path = join(temporaryFolder(), "io.db");
    const openers = await Promise.all(
      Array.from({ length: 4 }, async () => {
        const child = spawn(process.execPath, ["--import", "tsx", join(packageRoot, "test/support/store-opener.ts"), path]);
        let said = "";
        child.stdout.on("data", (chunk) => {
          said += chunk;
        });
        const ended = new Promise<string>((done) => child.once("close", () => done(said)));
        await until("an opener to be ready", () => said.startsWith("ready"), 60_000);
        return { child, ended };
      }),
    );
    for (const { child } of openers) child.stdin.write("go\n");
    expect(await Promise.all(openers.map(({ ended }) => ended))).toEqual(Array(4).fill("ready opened"));
  }
});
