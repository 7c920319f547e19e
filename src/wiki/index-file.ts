import { lstatSync, rmSync, statSync } from "node:fs";
import { DatabaseSync } from "@photostructure/sqlite";
import type { Database } from "../store/transactions.ts";

/** Increase when the tables or the output of `normalize` change: the index stores normalized text. */
const SCHEMA_VERSION = 2;

// Page text is not stored: every hit is checked against the file. With detail=none, trigrams take about a third of the
// size of the text.
const SCHEMA = `
  CREATE TABLE page (
    id INTEGER PRIMARY KEY,
    path TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    called TEXT NOT NULL,
    tags TEXT NOT NULL,
    excerpt TEXT NOT NULL,
    bytes INTEGER NOT NULL,
    mtime REAL NOT NULL,
    stamp TEXT NOT NULL,
    long INTEGER NOT NULL
  );
  CREATE INDEX page_by_title ON page (called);
  CREATE INDEX page_by_mtime ON page (mtime);
  CREATE INDEX page_long ON page (id) WHERE long = 1;
  CREATE TABLE dirty (path TEXT PRIMARY KEY) WITHOUT ROWID;
  CREATE TABLE reads (path TEXT PRIMARY KEY, count INTEGER NOT NULL, last REAL NOT NULL) WITHOUT ROWID;
  CREATE INDEX reads_by_count ON reads (count);
  CREATE TABLE gram (term TEXT PRIMARY KEY, pages INTEGER NOT NULL) WITHOUT ROWID;
  CREATE TABLE state (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
  CREATE VIRTUAL TABLE tri USING fts5(fold, content='', contentless_delete=1, detail=none, tokenize='trigram case_sensitive 1');
  CREATE VIRTUAL TABLE tri_page USING fts5vocab('tri', 'instance');
  CREATE VIRTUAL TABLE tri_term USING fts5vocab('tri', 'row');
  INSERT INTO tri(tri, rank) VALUES ('automerge', 16);
`;

/** An open index file with its inode, to detect that another process replaced it. */
export interface IndexFile {
  db: Database;
  inode: number;
}

/** Opens the index, or creates an empty one if it is missing, outdated or corrupt. */
export function openIndexFile(path: string): IndexFile {
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found && (found.size === 0 || !found.isFile())) dropIndexFile(path);
  try {
    return open(path);
  } catch (error) {
    if (!isBroken(error)) throw error;
    dropIndexFile(path);
    return open(path);
  }
}

/** Whether an error means that the index is corrupt, rather than busy or out of space. */
export function isBroken(error: unknown): boolean {
  return (
    error instanceof Error &&
    /malformed|not a database|corrupt|no such (table|column|module)|disk I\/O error|unfit/i.test(error.message)
  );
}

export function dropIndexFile(path: string): void {
  for (const file of [path, `${path}-wal`, `${path}-shm`]) rmSync(file, { force: true, recursive: true });
}

function open(path: string): IndexFile {
  const db = new DatabaseSync(path);
  try {
    // NORMAL: a power cut may lose the last rows; the sweep at the next open restores them from the files.
    db.exec(
      "PRAGMA busy_timeout = 5000; PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA cache_size = -32000;",
    );
    if (versionOf(db) === 0) createSchema(db);
    if (versionOf(db) !== SCHEMA_VERSION) throw new Error(`${path}: unfit index`);
    return { db, inode: statSync(path).ino };
  } catch (error) {
    db.close();
    throw error;
  }
}

function createSchema(db: Database): void {
  db.exec("BEGIN IMMEDIATE");
  try {
    // Another process may have created it meanwhile.
    if (versionOf(db) === 0) db.exec(`${SCHEMA} PRAGMA user_version = ${SCHEMA_VERSION};`);
    db.exec("COMMIT");
  } catch (error) {
    // On a full disk SQLite has already rolled back.
    if (db.isTransaction) db.exec("ROLLBACK");
    throw error;
  }
}

function versionOf(db: Database): number {
  return Number(db.prepare("PRAGMA user_version").get()?.user_version);
}
