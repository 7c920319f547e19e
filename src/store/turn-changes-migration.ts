/** What each message and task changed, by folder. */
export const TURN_CHANGES_MIGRATION = {
  name: "0024-turn-changes",
  sql: `
    CREATE TABLE turn_changes (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      owner TEXT NOT NULL,
      root TEXT NOT NULL,
      place TEXT,
      files TEXT NOT NULL DEFAULT '{}',
      changed INTEGER NOT NULL DEFAULT 0,
      notes TEXT NOT NULL DEFAULT '[]',
      open TEXT,
      undone INTEGER NOT NULL DEFAULT 0,
      undoing TEXT CHECK (undoing IN ('undo','redo')),
      created_at TEXT NOT NULL,
      UNIQUE (owner, root)
    );
    CREATE INDEX turn_changes_by_age ON turn_changes (created_at);
    CREATE INDEX turn_changes_unfinished ON turn_changes (seq) WHERE open IS NOT NULL OR undoing IS NOT NULL;
  `,
};
