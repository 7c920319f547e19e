/** The text of each page that IO last wrote or saw, and unreviewed changes by others. */
export const KNOWN_PAGES_MIGRATION = {
  name: "0036-known-pages",
  sql: `
    CREATE TABLE known_pages (
      name TEXT PRIMARY KEY,
      hash TEXT NOT NULL,
      next TEXT
    ) WITHOUT ROWID;
    CREATE TABLE outside_changes (
      name TEXT PRIMARY KEY,
      change TEXT NOT NULL CHECK (change IN ('written','deleted')),
      changes INTEGER NOT NULL,
      before TEXT NOT NULL,
      began_at TEXT NOT NULL,
      at TEXT NOT NULL
    ) WITHOUT ROWID;
  `,
};
