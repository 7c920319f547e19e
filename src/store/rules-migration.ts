/** The user's standing rules. */
export const RULES_MIGRATION = {
  name: "0029-rules",
  sql: `
    CREATE TABLE rules (
      seq INTEGER PRIMARY KEY AUTOINCREMENT,
      id TEXT NOT NULL UNIQUE,
      text TEXT NOT NULL,
      conversation TEXT,
      origin TEXT NOT NULL,
      created_at TEXT NOT NULL
    );
    CREATE UNIQUE INDEX rules_by_text ON rules (text, coalesce(conversation, ''));
  `,
};
