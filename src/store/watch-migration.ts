/** Watched repositories, the events seen there, and the rounds of work on pull requests. */
export const WATCH_MIGRATION = {
  name: "0031-watches",
  sql: `
    CREATE TABLE watches (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT NOT NULL UNIQUE,
      project_path TEXT NOT NULL,
      squad TEXT,
      forge TEXT NOT NULL CHECK (forge IN ('github','gitea')),
      host TEXT NOT NULL,
      repo TEXT NOT NULL,
      label TEXT,
      mention TEXT,
      reviews INTEGER NOT NULL,
      checks INTEGER NOT NULL,
      max_rounds INTEGER NOT NULL,
      state TEXT NOT NULL CHECK (state IN ('on','paused')),
      since TEXT,
      looked_at TEXT,
      next_at TEXT,
      saw TEXT,
      problem TEXT,
      created_at TEXT NOT NULL,
      UNIQUE (host, repo)
    );
    CREATE TABLE watch_triggers (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT NOT NULL UNIQUE,
      watch TEXT NOT NULL,
      host TEXT NOT NULL,
      repo TEXT NOT NULL,
      number INTEGER NOT NULL,
      kind TEXT NOT NULL,
      external_id TEXT NOT NULL,
      version TEXT NOT NULL,
      by_login TEXT NOT NULL,
      detail TEXT NOT NULL,
      state TEXT NOT NULL,
      reason TEXT,
      run TEXT,
      round TEXT,
      created_at TEXT NOT NULL,
      updated_at TEXT NOT NULL,
      UNIQUE (host, repo, kind, external_id, version)
    );
    CREATE INDEX watch_triggers_by_number ON watch_triggers (host, repo, number, seq);
    CREATE INDEX watch_triggers_by_watch ON watch_triggers (watch, seq);
    CREATE INDEX watch_triggers_open ON watch_triggers (watch, seq)
      WHERE state IN ('waiting','claiming','starting','working');
    CREATE INDEX watch_triggers_by_run ON watch_triggers (run) WHERE run IS NOT NULL;
    CREATE TABLE watch_rounds (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT NOT NULL UNIQUE,
      watch TEXT NOT NULL,
      pull TEXT NOT NULL REFERENCES pulls (id) ON DELETE CASCADE,
      run TEXT NOT NULL,
      count INTEGER NOT NULL,
      red INTEGER NOT NULL,
      prompt TEXT NOT NULL,
      state TEXT NOT NULL CHECK (state IN ('working','publishing','answering','done','failed','asked')),
      reason TEXT,
      created_at TEXT NOT NULL,
      finished_at TEXT,
      UNIQUE (pull, count)
    );
    CREATE INDEX watch_rounds_open ON watch_rounds (watch, seq) WHERE state IN ('working','publishing','answering');
  `,
};
