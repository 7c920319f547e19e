/** The hosts that work for this one. */
export const WORKER_MIGRATION = {
  name: "0020-workers",
  sql: `
    CREATE TABLE workers (
      name TEXT PRIMARY KEY,
      public_key TEXT NOT NULL UNIQUE,
      labels TEXT NOT NULL,
      capacity INTEGER NOT NULL,
      version TEXT NOT NULL,
      protocol INTEGER NOT NULL,
      engine TEXT,
      wall TEXT,
      running INTEGER NOT NULL DEFAULT 0,
      state TEXT NOT NULL DEFAULT 'active' CHECK (state IN ('active','draining')),
      seen_at TEXT,
      created_at TEXT NOT NULL
    ) WITHOUT ROWID;
  `,
};
