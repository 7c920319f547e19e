/** The tables of what a person decides and limits, oldest first; part of all migrations. */
export const SAFETY_MIGRATIONS: readonly { name: string; sql: string }[] = [
  {
    name: "0011-approvals",
    sql: `
      CREATE TABLE approvals (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        kind TEXT NOT NULL CHECK (kind IN ('call','budget')),
        owner_kind TEXT NOT NULL CHECK (owner_kind IN ('message','task','run')),
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
      CREATE INDEX approvals_waiting ON approvals (expires_at) WHERE state = 'waiting';
      CREATE INDEX approvals_by_hash ON approvals (hash);
      CREATE INDEX approvals_by_owner ON approvals (owner_id);
      CREATE INDEX approvals_by_state ON approvals (state, seq);

      CREATE TABLE approval_rules (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        scope TEXT NOT NULL CHECK (scope IN ('task','project')),
        place TEXT NOT NULL,
        tool TEXT NOT NULL,
        match TEXT NOT NULL,
        approval TEXT NOT NULL,
        created_at TEXT NOT NULL,
        UNIQUE (scope, place, tool, match)
      );

      CREATE TABLE wider_outbox (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        key TEXT NOT NULL UNIQUE,
        lane TEXT NOT NULL,
        kind TEXT NOT NULL CHECK (kind IN ('reply','task','run','approval')),
        about TEXT NOT NULL,
        conversation TEXT NOT NULL,
        source TEXT NOT NULL,
        text TEXT,
        state TEXT NOT NULL CHECK (state IN ('owed','kept','delivered','undeliverable')),
        attempts INTEGER NOT NULL DEFAULT 0,
        created_at TEXT NOT NULL,
        settled_at TEXT
      );
      INSERT INTO wider_outbox
        SELECT seq, key, lane, kind, about, conversation, source, text, state, attempts, created_at, settled_at FROM outbox;
      DROP TABLE outbox;
      ALTER TABLE wider_outbox RENAME TO outbox;
      CREATE INDEX outbox_owed ON outbox (lane, seq) WHERE state = 'owed';
      CREATE INDEX outbox_waiting ON outbox (seq) WHERE state IN ('owed','kept');
      CREATE INDEX outbox_by_subject ON outbox (about, conversation);
    `,
  },
  {
    name: "0013-skills",
    sql: `
      CREATE TABLE skills (
        slug TEXT PRIMARY KEY,
        hash TEXT NOT NULL,
        enabled_at TEXT NOT NULL,
        enabled_by TEXT NOT NULL
      ) WITHOUT ROWID;
    `,
  },
  {
    name: "0014-steering",
    sql: `
      CREATE TABLE steers (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        message_id TEXT NOT NULL REFERENCES messages(id) ON DELETE CASCADE,
        text TEXT NOT NULL,
        prompt_id TEXT,
        created_at TEXT NOT NULL
      );
      CREATE INDEX steers_by_message ON steers (message_id, seq);
    `,
  },
];
