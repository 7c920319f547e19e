import { createTransactions, type Database } from "../store/transactions.ts";
import { recountTrigrams, tidyIndex } from "./index-upkeep.ts";
import type { Meta } from "./markdown.ts";
import { normalize } from "./normalize.ts";
import { prepareStatements } from "./page-statements.ts";
import { indexable, mostSelective } from "./trigrams.ts";

/** A page's entry in the index, without its text. */
export interface Entry extends Meta {
  path: string;
  bytes: number;
  /** When the file was last written, in milliseconds. */
  mtime: number;
}

export interface Indexed extends Entry {
  id: number;
  /** The file's state when it was read; a different state on disk means that the page changed. */
  stamp: string;
}

/** A page that may be a hit. */
export type Candidate = Pick<Indexed, "id" | "path">;

/** Queries on an open index file, all synchronous. */
export interface PageIndex {
  transaction<T>(work: () => T): T;
  mark(path: string): void;
  marked(limit?: number): string[];
  unmark(path: string): void;
  put(entry: Omit<Indexed, "id">, text: string): void;
  remove(path: string): void;
  get(path: string): Indexed | undefined;
  getAll(paths: readonly string[]): Indexed[];
  stamps(): Map<string, string>;
  count(under?: string): number;
  /** Pages by path, after the given one. */
  page(under: string, after: string, limit: number): Indexed[];
  newest(limit: number, before?: number): Indexed[];
  /** The paths of the most-read pages. */
  mostRead(limit: number): string[];
  reads(path: string): number;
  countRead(path: string, now: number): void;
  /** Pages that contain all these trigrams, newest first. */
  containing(grams: readonly string[], before: number, limit: number): Candidate[];
  /** Pages that contain all these one- or two-character texts, newest first. */
  containingShort(texts: readonly string[]): Candidate[];
  /** Pages whose title contains the normalized text. */
  titled(text: string, limit: number): Candidate[];
  /** Pages too long to index, which every search reads. */
  long(): Candidate[];
  /** Chooses a few trigrams, some from each group, that narrow down the pages fastest. */
  selective(groups: readonly (readonly string[])[], most: number): string[];
  /** Counts the pages that contain each trigram, one short slice per step. */
  recount(): Generator<void>;
  /** After bulk indexing: merges the index segments and frees their space, one slice per step. */
  tidy(): Generator<void>;
  /** Whether any process changed pages since index.md was written. */
  uncatalogued(): boolean;
  catalogued(): void;
  close(): void;
}

/** Longer pages are scanned at each search: reading one takes milliseconds, splitting it into trigrams takes seconds. */
const LONG_PAGE = 500_000;

export function createPageIndex(connection: Database): PageIndex {
  const { db, transaction } = createTransactions(connection);
  const statements = prepareStatements(db);
  const count = (under = "pages/") =>
    Number((under === "pages/" ? statements.count.get() : statements.countUnder.get(under, after(under)))?.n);
  const remove = (path: string) => {
    const known = statements.idOf.get(path);
    if (known === undefined) return;
    statements.remove.run(Number(known.id));
    statements.setUncatalogued.run(1);
    if (known.long === 0) statements.removeText.run(Number(known.id));
  };

  const index: PageIndex = {
    transaction: (work) => transaction(work),
    mark: (path) => void statements.mark.run(path),
    marked: (limit = -1) => statements.marked.all(limit).map((row) => String(row.path)),
    unmark: (path) => void statements.unmark.run(path),
    put(entry, text) {
      remove(entry.path);
      const { path, title, tags, excerpt, bytes, mtime, stamp } = entry;
      const long = text.length > LONG_PAGE;
      statements.setUncatalogued.run(1);
      const made = statements.insert.run(
        path,
        title,
        normalize(title),
        JSON.stringify(tags),
        excerpt,
        bytes,
        mtime,
        stamp,
        long ? 1 : 0,
      );
      // The path is appended so that the text's last letters start a trigram too.
      if (!long) statements.insertText.run(made.lastInsertRowid, `${indexable(normalize(text))}\n${normalize(path)}`);
    },
    remove,
    get: (path) => asEntry(statements.get.get(path)),
    getAll: (paths) => entries(statements.getAll.all(JSON.stringify(paths))),
    stamps: () => new Map(statements.stamps.all().map((row) => [String(row.path), String(row.stamp)])),
    count,
    page: (under, from, limit) => entries(statements.page.all(from, under, after(under), limit)),
    newest: (limit, before = Number.MAX_VALUE) => entries(statements.newest.all(before, limit)),
    mostRead: (limit) => statements.mostRead.all(limit).map((row) => String(row.path)),
    reads: (path) => Number(statements.reads.get(path)?.count ?? 0),
    countRead: (path, now) => void statements.countRead.run(path, now),
    containing: (grams, before, limit) => candidates(statements.containing.all(grams.map(quoted).join(" AND "), before, limit)),
    containingShort(texts) {
      const each = texts.map(() => "SELECT DISTINCT doc FROM tri_page WHERE term >= ? AND term < ?").join(" INTERSECT ");
      const ranges = texts.map(indexable).flatMap((text) => [text, `${text}${"\u{10ffff}".repeat(3)}`]);
      const all = db.prepare(`SELECT p.id, p.path FROM (${each}) CROSS JOIN page p ON p.id = doc ORDER BY p.id DESC`);
      return candidates(all.all(...ranges));
    },
    titled: (text, limit) => candidates(statements.titled.all(text, limit)),
    long: () => candidates(statements.long.all()),
    selective(groups, most) {
      const rows = statements.counts.all(JSON.stringify([...new Set(groups.flat())]));
      return mostSelective(groups, new Map(rows.map((row) => [row.term, Number(row.pages)])), most);
    },
    recount: () => recountTrigrams(db, statements, index),
    tidy: () => tidyIndex(db, statements),
    uncatalogued: () => statements.uncatalogued.get()?.value !== 0,
    catalogued: () => void statements.setUncatalogued.run(0),
    close: () => db.close(),
  };
  return index;
}

/** The first path that sorts after every path with this prefix. */
function after(prefix: string): string {
  return `${prefix}\u{10ffff}`;
}

function quoted(gram: string): string {
  return `"${gram.replaceAll('"', '""')}"`;
}

type Row = Record<string, unknown>;

function entries(rows: Row[]): Indexed[] {
  return rows.flatMap((row) => asEntry(row) ?? []);
}

function candidates(rows: Row[]): Candidate[] {
  return rows.map((row) => ({ id: Number(row.id), path: String(row.path) }));
}

function asEntry(row: Row | undefined): Indexed | undefined {
  if (row === undefined) return undefined;
  const tags: unknown = JSON.parse(String(row.tags));
  return {
    id: Number(row.id),
    path: String(row.path),
    title: String(row.title),
    tags: Array.isArray(tags) ? tags.map(String) : [],
    excerpt: String(row.excerpt),
    bytes: Number(row.bytes),
    mtime: Number(row.mtime),
    stamp: String(row.stamp),
  };
}
