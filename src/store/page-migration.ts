/** Data for the web page: people's own edits, attempts of steps, and context usage. */
export const PAGE_MIGRATION = {
  name: "0018-edits-attempts-contexts",
  sql: `
    CREATE TABLE page_edits (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      path TEXT NOT NULL,
      change TEXT NOT NULL CHECK (change IN ('written','deleted')),
      channel TEXT NOT NULL,
      at TEXT NOT NULL
    );
    CREATE INDEX page_edits_by_time ON page_edits (at);

    CREATE TABLE run_attempts (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      run_id TEXT NOT NULL REFERENCES runs(id) ON DELETE CASCADE,
      key TEXT NOT NULL,
      started_at TEXT NOT NULL,
      finished_at TEXT,
      error TEXT
    );
    CREATE INDEX run_attempts_of_run ON run_attempts (run_id, seq);

    CREATE TABLE conversation_contexts (
      conversation TEXT PRIMARY KEY,
      context TEXT NOT NULL
    ) WITHOUT ROWID;
    CREATE TRIGGER conversation_removed AFTER DELETE ON conversations BEGIN
      DELETE FROM conversation_contexts WHERE conversation = old.name;
    END;
  `,
};
