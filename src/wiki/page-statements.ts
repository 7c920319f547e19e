import type { Database } from "../store/transactions.ts";

export type Statements = ReturnType<typeof prepareStatements>;

/** Every query on the index, prepared once. */
export function prepareStatements(db: Database) {
  const sql = (text: string) => db.prepare(text);
  const columns = "p.id, p.path, p.title, p.tags, p.excerpt, p.bytes, p.mtime, p.stamp";
  return {
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
    containing: sql(
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
}
