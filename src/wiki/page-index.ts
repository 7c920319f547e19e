import { createTransaction, type Database } from "../store/open.ts";
import type { Meta } from "./markdown.ts";
import { normalize } from "./normalize.ts";

/** A page as the index knows it, without its text. */
export interface Entry extends Meta {
  path: string;
  bytes: number;
  /** When the file was last written, in milliseconds. */
  mtime: number;
}

export interface Indexed extends Entry {
  id: number;
  /** The file's state when it was read; anything else on disk means that the page changed since. */
  stamp: string;
}

/** Where a page that may be a hit is found. */
export type Candidate = Pick<Indexed, "id" | "path">;

/** The questions that are asked of an open index file. All of it is synchronous. */
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
  /** The paths of the pages read most. */
  mostRead(limit: number): string[];
  reads(path: string): number;
  countRead(path: string, now: number): void;
  /** Pages that hold all these trigrams somewhere, newest first. */
  holding(grams: readonly string[], before: number, limit: number): Candidate[];
  /** Pages that hold all these texts of one or two characters, newest first. */
  holdingShort(texts: readonly string[]): Candidate[];
  /** Pages whose title holds the folded text. */
  titled(text: string, limit: number): Candidate[];
  /** Pages too long to be indexed, which are always read. */
  long(): Candidate[];
  /** The few of these trigrams, some from each group, by which the pages that hold them all are found soonest. */
  telling(groups: readonly (readonly string[])[], most: number): string[];
  /** Counts in how many pages the trigrams stand, a slice a step, so that nothing waits for it. */
  recount(): Generator<void>;
  /** After much was indexed: joins the pieces of the index and gives back the space they took, a slice a step. */
  tidy(): Generator<void>;
  /** Whether pages changed since index.md was written, whichever process changed them. */
  uncatalogued(): boolean;
  catalogued(): void;
  close(): void;
}

/** Longer pages are scanned at each search: reading one takes milliseconds, cutting it into trigrams takes seconds. */
const LONG_PAGE = 500_000;
const FIRST_COUNT = 1_000;
const MERGED_PAGES = 250;
const FREED_PAGES = 500;
/** About how many pages hold a trigram that was not counted, being rare. */
const UNCOUNTED = 5;
/** Reading one page to see whether it is a hit takes as long as walking past so many pages in a trigram's list. */
const READ_COST = 1_000;
/** What part of the pages that hold some trigrams of a phrase hold one more of them: they keep each other company. */
const STILL_LEFT = 0.3;

/** All trigrams of a text, as the tokenizer cuts them: by code points. */
export function gramsOf(folded: string): string[] {
  const letters = [...indexable(folded)];
  const grams = new Set<string>();
  for (let at = 0; at + 3 <= letters.length; at += 1) grams.add(`${letters[at]}${letters[at + 1]}${letters[at + 2]}`);
  return [...grams];
}

/** The tokenizer stops at NUL; another control character stands in for it, on both sides. */
function indexable(folded: string): string {
  return folded.includes("\0") ? folded.replaceAll("\0", "\u0001") : folded;
}

export function createPageIndex(db: Database): PageIndex {
  const sql = (text: string) => db.prepare(text);
  const columns = "p.id, p.path, p.title, p.tags, p.excerpt, p.bytes, p.mtime, p.stamp";
  const statements = {
    mark: sql("INSERT OR IGNORE INTO dirty (path) VALUES (?)"),
    marked: sql("SELECT path FROM dirty LIMIT ?"),
    unmark: sql("DELETE FROM dirty WHERE path = ?"),
    insert: sql(
      "INSERT INTO page (path, title, called, tags, excerpt, bytes, mtime, stamp, long) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    ),
    insertText: sql("INSERT INTO tri (rowid, fold) VALUES (?, ?)"),
    idOf: sql("SELECT id, long FROM page WHERE path = ?"),
    remove: sql("DELETE FROM page WHERE id = ?"),
    removeText: sql("DELETE FROM tri WHERE rowid = ?"),
    get: sql(`SELECT ${columns} FROM page p WHERE path = ?`),
    getAll: sql(`SELECT ${columns} FROM json_each(?) AS wanted CROSS JOIN page p ON p.path = wanted.value`),
    stamps: sql("SELECT path, stamp FROM page"),
    count: sql("SELECT count(*) AS n FROM page"),
    countUnder: sql("SELECT count(*) AS n FROM page WHERE path >= ? AND path < ?"),
    page: sql(`SELECT ${columns} FROM page p WHERE path > ? AND path >= ? AND path < ? ORDER BY path LIMIT ?`),
    newest: sql(`SELECT ${columns} FROM page p WHERE mtime < ? ORDER BY mtime DESC LIMIT ?`),
    mostRead: sql("SELECT path FROM reads ORDER BY count DESC LIMIT ?"),
    reads: sql("SELECT count FROM reads WHERE path = ?"),
    countRead: sql(
      "INSERT INTO reads (path, count, last) VALUES (?, 1, ?) ON CONFLICT (path) DO UPDATE SET count = count + 1, last = excluded.last",
    ),
    holding: sql(
      `SELECT p.id, p.path FROM tri CROSS JOIN page p ON p.id = tri.rowid
       WHERE tri MATCH ? AND tri.rowid < ? ORDER BY tri.rowid DESC LIMIT ?`,
    ),
    titled: sql(
      "SELECT p.id, p.path FROM (SELECT id FROM page WHERE instr(called, ?) > 0 LIMIT ?) AS named CROSS JOIN page p ON p.id = named.id",
    ),
    long: sql("SELECT p.id, p.path FROM page p WHERE long = 1"),
    counts: sql("SELECT term, pages FROM json_each(?) AS wanted CROSS JOIN gram ON term = wanted.value"),
    terms: sql("SELECT term, doc FROM tri_term WHERE term > ? LIMIT 2000"),
    counted: sql("SELECT value FROM state WHERE key = 'counted'"),
    setCounted: sql("INSERT OR REPLACE INTO state (key, value) VALUES ('counted', ?)"),
    uncatalogued: sql("SELECT value FROM state WHERE key = 'uncatalogued'"),
    setUncatalogued: sql("INSERT OR REPLACE INTO state (key, value) VALUES ('uncatalogued', ?)"),
    merge: sql("INSERT INTO tri (tri, rank) VALUES ('merge', ?)"),
    changes: sql("SELECT total_changes() AS n"),
    free: sql("PRAGMA freelist_count"),
    addGram: sql("INSERT INTO gram (term, pages) VALUES (?, ?)"),
  };
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
    transaction: createTransaction(db),
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
      // The path behind the text lets the text's last letters begin a trigram too.
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
    holding: (grams, before, limit) => candidates(statements.holding.all(grams.map(quoted).join(" AND "), before, limit)),
    holdingShort(texts) {
      const each = texts.map(() => "SELECT DISTINCT doc FROM tri_page WHERE term >= ? AND term < ?").join(" INTERSECT ");
      const ranges = texts.map(indexable).flatMap((text) => [text, `${text}${"\u{10ffff}".repeat(3)}`]);
      const all = sql(`SELECT p.id, p.path FROM (${each}) CROSS JOIN page p ON p.id = doc ORDER BY p.id DESC`);
      return candidates(all.all(...ranges));
    },
    titled: (text, limit) => candidates(statements.titled.all(text, limit)),
    long: () => candidates(statements.long.all()),
    telling(groups, most) {
      const rows = statements.counts.all(JSON.stringify([...new Set(groups.flat())]));
      const counts = new Map(rows.map((row) => [row.term, Number(row.pages)]));
      const ordered = groups.map((grams) => {
        const counted = grams.map((gram) => ({ gram, pages: counts.get(gram) ?? UNCOUNTED }));
        return counted.sort((a, b) => a.pages - b.pages).slice(0, most);
      });
      const chosen = new Set<string>();
      let left = Number.POSITIVE_INFINITY;
      for (let round = 0; round < most; round += 1) {
        const next = ordered.flatMap((counted) => counted[round] ?? []).sort((a, b) => a.pages - b.pages);
        for (const { gram, pages } of next) {
          if (chosen.size >= most || left * READ_COST < pages) return [...chosen];
          left = Math.min(pages, left * STILL_LEFT);
          chosen.add(gram);
        }
      }
      return [...chosen];
    },
    *recount() {
      const pages = count();
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
    },
    *tidy() {
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
    },
    uncatalogued: () => statements.uncatalogued.get()?.value !== 0,
    catalogued: () => void statements.setUncatalogued.run(0),
    close: () => db.close(),
  };
  return index;
}

/** The first path behind all that begin with the given prefix. */
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
