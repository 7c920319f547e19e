/** For other programs: their tokens, and the history of OpenAI clients. */
export const PROGRAMS_MIGRATION = {
  name: "0027-programs",
  sql: `
    CREATE TABLE client_tokens (
      name TEXT PRIMARY KEY,
      hash TEXT NOT NULL UNIQUE,
      scopes TEXT NOT NULL,
      created_at TEXT NOT NULL,
      last_used_at TEXT
    ) WITHOUT ROWID;

    CREATE TABLE openai_requests (
      message_id TEXT PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
      fingerprint TEXT NOT NULL,
      said TEXT NOT NULL,
      system TEXT NOT NULL,
      answered_at TEXT
    ) WITHOUT ROWID;
    CREATE INDEX openai_requests_by_fingerprint ON openai_requests (fingerprint);
    CREATE INDEX openai_requests_by_said ON openai_requests (said);
  `,
};

export const RESPONSE_FIELDS_MIGRATION = {
  name: "0039-response-fields",
  sql: "ALTER TABLE openai_requests ADD COLUMN fields TEXT;",
};
