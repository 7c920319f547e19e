/** IO's own news, news held back for the next digest, and the digest's counters. */
export const NEWS_MIGRATION = {
  name: "0028-news",
  sql: `
    CREATE TABLE wider_outbox (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      key TEXT NOT NULL UNIQUE,
      lane TEXT NOT NULL,
      kind TEXT NOT NULL CHECK (kind IN ('reply','task','run','approval','reminder','news')),
      about TEXT NOT NULL,
      conversation TEXT NOT NULL,
      source TEXT NOT NULL,
      text TEXT,
      level TEXT CHECK (level IN ('silent','normal','urgent')),
      state TEXT NOT NULL CHECK (state IN ('owed','kept','held','delivered','undeliverable')),
      attempts INTEGER NOT NULL DEFAULT 0,
      created_at TEXT NOT NULL,
      settled_at TEXT
    );
    INSERT INTO wider_outbox
      SELECT seq, key, lane, kind, about, conversation, source, text, NULL, state, attempts, created_at, settled_at FROM outbox;
    DROP TABLE outbox;
    ALTER TABLE wider_outbox RENAME TO outbox;
    CREATE INDEX outbox_owed ON outbox (lane, seq) WHERE state = 'owed';
    CREATE INDEX outbox_waiting ON outbox (seq) WHERE state IN ('owed','kept');
    CREATE INDEX outbox_held ON outbox (seq) WHERE state = 'held';
    CREATE INDEX outbox_by_subject ON outbox (about, conversation);

    ALTER TABLE conversations ADD COLUMN news TEXT;

    CREATE INDEX messages_ended ON messages (status, finished_at) WHERE finished_at IS NOT NULL;
    CREATE INDEX agent_tasks_ended ON agent_tasks (status, finished_at) WHERE finished_at IS NOT NULL;
    CREATE INDEX runs_ended ON runs (status, finished_at) WHERE finished_at IS NOT NULL;
    CREATE INDEX usage_by_moment ON usage (created_at);
  `,
};
