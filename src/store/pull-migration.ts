/** Pull requests of runs and tasks, and every request that changes something at a forge. */
export const PULL_MIGRATION = {
  name: "0030-pull-requests",
  sql: `
    CREATE TABLE pulls (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT NOT NULL UNIQUE,
      owner_kind TEXT NOT NULL CHECK (owner_kind IN ('run','task')),
      owner_id TEXT NOT NULL UNIQUE,
      state TEXT NOT NULL CHECK (state IN ('planned','waiting','publishing','open','merged','closed','denied','failed')),
      reason TEXT,
      project_path TEXT NOT NULL,
      forge TEXT CHECK (forge IN ('github','gitea')),
      host TEXT,
      repo TEXT,
      branch TEXT,
      base TEXT,
      commit_id TEXT,
      number INTEGER,
      url TEXT,
      draft INTEGER,
      wanted_base TEXT,
      labels TEXT NOT NULL DEFAULT '[]',
      approval TEXT,
      round INTEGER NOT NULL DEFAULT 1,
      created_at TEXT NOT NULL,
      updated_at TEXT NOT NULL
    );
    CREATE INDEX pulls_under_way ON pulls (seq) WHERE state IN ('planned','waiting','publishing');
    CREATE TABLE forge_requests (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      pull TEXT NOT NULL REFERENCES pulls (id) ON DELETE CASCADE,
      action TEXT NOT NULL,
      detail TEXT NOT NULL,
      state TEXT NOT NULL CHECK (state IN ('begun','done','failed','unknown')),
      result TEXT,
      created_at TEXT NOT NULL,
      finished_at TEXT
    );
    CREATE INDEX forge_requests_by_pull ON forge_requests (pull, seq);
  `,
};

export const PULL_CONFLICT_MIGRATION = {
  name: "0038-pull-conflicts",
  sql: "ALTER TABLE pulls ADD COLUMN conflict INTEGER NOT NULL DEFAULT 0;",
};
