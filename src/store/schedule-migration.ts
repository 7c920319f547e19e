/** Schedules and their occurrences. */
export const SCHEDULE_MIGRATION = {
  name: "0026-schedules",
  sql: `
    CREATE TABLE schedules (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT NOT NULL UNIQUE,
      when_given TEXT NOT NULL,
      text TEXT NOT NULL,
      tz TEXT NOT NULL,
      squad TEXT,
      swarm TEXT,
      conversation TEXT NOT NULL,
      catch_up TEXT NOT NULL CHECK (catch_up IN ('once','skip','ask')),
      max_age TEXT NOT NULL,
      state TEXT NOT NULL CHECK (state IN ('active','paused','done')),
      reason TEXT,
      next_at TEXT,
      anchor_at TEXT NOT NULL,
      failures INTEGER NOT NULL DEFAULT 0,
      created_by TEXT NOT NULL,
      source TEXT NOT NULL,
      created_at TEXT NOT NULL
    );
    CREATE INDEX schedules_due ON schedules (next_at) WHERE state = 'active';
    CREATE TABLE occurrences (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT NOT NULL UNIQUE,
      schedule TEXT NOT NULL REFERENCES schedules (id) ON DELETE CASCADE,
      due_at TEXT NOT NULL,
      state TEXT NOT NULL CHECK (state IN ('waiting','running','done','failed','skipped','missed')),
      reason TEXT,
      message TEXT,
      task TEXT,
      run TEXT,
      finished_at TEXT,
      created_at TEXT NOT NULL,
      UNIQUE (schedule, due_at)
    );
    CREATE INDEX occurrences_open ON occurrences (schedule) WHERE state IN ('waiting','running');
    CREATE INDEX occurrences_by_message ON occurrences (message) WHERE message IS NOT NULL;
    CREATE INDEX occurrences_by_task ON occurrences (task) WHERE task IS NOT NULL;
    CREATE INDEX occurrences_by_run ON occurrences (run) WHERE run IS NOT NULL;

    CREATE TABLE wider_approvals (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT NOT NULL UNIQUE,
      kind TEXT NOT NULL CHECK (kind IN ('call','budget')),
      owner_kind TEXT NOT NULL CHECK (owner_kind IN ('message','task','run','schedule')),
      owner_id TEXT NOT NULL,
      conversation TEXT,
      squad TEXT,
      actor TEXT NOT NULL,
      tool TEXT NOT NULL,
      hash TEXT NOT NULL,
      summary TEXT NOT NULL,
      command TEXT,
      path TEXT,
      diff TEXT,
      cwd TEXT,
      tree_hash TEXT,
      reason TEXT,
      rule TEXT,
      project TEXT,
      scopes TEXT NOT NULL,
      state TEXT NOT NULL CHECK (state IN ('waiting','allowed','denied','expired','withdrawn')),
      scope TEXT,
      decided_by TEXT,
      note TEXT,
      used INTEGER NOT NULL DEFAULT 0,
      created_at TEXT NOT NULL,
      expires_at TEXT NOT NULL,
      decided_at TEXT
    );
    INSERT INTO wider_approvals SELECT seq, id, kind, owner_kind, owner_id, conversation, squad, actor, tool, hash, summary, command, path, diff, cwd, tree_hash, reason, rule, project, scopes, state, scope, decided_by, note, used, created_at, expires_at, decided_at
      FROM approvals;
    DROP TABLE approvals;
    ALTER TABLE wider_approvals RENAME TO approvals;
    CREATE INDEX approvals_waiting ON approvals (expires_at) WHERE state = 'waiting';
    CREATE INDEX approvals_by_hash ON approvals (hash);
    CREATE INDEX approvals_by_owner ON approvals (owner_id);
    CREATE INDEX approvals_by_state ON approvals (state, seq);
  `,
};
