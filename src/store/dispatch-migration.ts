/** Jobs, done here or by workers, and all their attempts. */
export const DISPATCH_MIGRATION = {
  name: "0019-dispatch",
  sql: `
    CREATE TABLE dispatch_jobs (
      id TEXT PRIMARY KEY,
      epoch INTEGER NOT NULL,
      state TEXT NOT NULL CHECK (state IN ('open','done','failed','cancelled')),
      job TEXT NOT NULL,
      ending TEXT,
      created_at TEXT NOT NULL,
      ended_at TEXT
    ) WITHOUT ROWID;
    CREATE INDEX dispatch_jobs_open ON dispatch_jobs (created_at) WHERE state = 'open';
    CREATE INDEX dispatch_jobs_ended ON dispatch_jobs (ended_at) WHERE state <> 'open';
    CREATE TABLE dispatch_attempts (
      job TEXT NOT NULL REFERENCES dispatch_jobs (id) ON DELETE CASCADE,
      lease TEXT NOT NULL,
      epoch INTEGER NOT NULL,
      attempt INTEGER NOT NULL,
      worker TEXT NOT NULL,
      told INTEGER NOT NULL DEFAULT 0,
      ending TEXT,
      started_at TEXT NOT NULL,
      PRIMARY KEY (job, lease)
    ) WITHOUT ROWID;
    ALTER TABLE agent_tasks ADD COLUMN worker TEXT;
    ALTER TABLE run_steps ADD COLUMN worker TEXT;
  `,
};
