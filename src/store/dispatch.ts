import type { Store } from "./open.ts";

export type JobState = "open" | "done" | "failed" | "cancelled";

/** A stored job; its content and end are JSON of the workers room. */
export interface JobRow {
  id: string;
  epoch: number;
  state: JobState;
  job: string;
  ending: string | null;
}

export interface AttemptRow {
  epoch: number;
  attempt: number;
  lease: string;
  worker: string;
  ending: string | null;
}

/** Jobs and their attempts; a worker's report counts only if it agrees with these rows. */
export interface DispatchRows {
  /** False if a job by that id exists. */
  insert(id: string, epoch: number, job: string): boolean;
  find(id: string): JobRow | undefined;
  /** The epoch of an unfinished job. */
  openEpoch(id: string): number | undefined;
  /** Oldest first. */
  open(): JobRow[];
  /** Moves an open job to a later epoch; false if it has ended, or has that epoch already. */
  raise(id: string, epoch: number, job: string): boolean;
  /** The fence: only the end of the current epoch counts, and only once. */
  end(id: string, epoch: number, state: Exclude<JobState, "open">, ending: string): boolean;
  attempts(id: string): AttemptRow[];
  /** Records an attempt or its end; a known end is not replaced. */
  note(id: string, attempt: AttemptRow): void;
  /** Whether an event of an attempt is new; marks it as seen. */
  told(id: string, lease: string, seq: number): boolean;
  /** Deletes jobs that ended before a moment; returns how many. */
  forget(before: string): number;
}

export function createDispatchRows({ db }: Store, now: () => Date = () => new Date()): DispatchRows {
  const insert = db.prepare("INSERT OR IGNORE INTO dispatch_jobs VALUES (?, ?, 'open', ?, NULL, ?, NULL)");
  const find = db.prepare("SELECT id, epoch, state, job, ending FROM dispatch_jobs WHERE id = ?");
  const openEpoch = db.prepare("SELECT epoch FROM dispatch_jobs WHERE id = ? AND state = 'open'");
  const open = db.prepare("SELECT id, epoch, state, job, ending FROM dispatch_jobs WHERE state = 'open' ORDER BY created_at, id");
  const raise = db.prepare("UPDATE dispatch_jobs SET epoch = ?2, job = ?3 WHERE id = ?1 AND state = 'open' AND epoch < ?2");
  const end = db.prepare(
    "UPDATE dispatch_jobs SET state = ?3, ending = ?4, ended_at = ?5 WHERE id = ?1 AND epoch = ?2 AND state = 'open'",
  );
  const attempts = db.prepare(
    "SELECT epoch, attempt, lease, worker, ending FROM dispatch_attempts WHERE job = ? ORDER BY epoch, attempt",
  );
  const note = db.prepare(
    `INSERT INTO dispatch_attempts (job, lease, epoch, attempt, worker, ending, started_at) VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (job, lease) DO UPDATE SET ending = coalesce(ending, excluded.ending)`,
  );
  const told = db.prepare("UPDATE dispatch_attempts SET told = ?3 WHERE job = ?1 AND lease = ?2 AND told < ?3");
  const forget = db.prepare("DELETE FROM dispatch_jobs WHERE state <> 'open' AND ended_at < ?");
  const changed = (result: { changes: number | bigint }) => Number(result.changes) > 0;
  return {
    insert: (id, epoch, job) => changed(insert.run(id, epoch, job, now().toISOString())),
    find: (id) => find.get(id) as JobRow | undefined,
    openEpoch: (id) => (openEpoch.get(id) as { epoch: number } | undefined)?.epoch,
    open: () => open.all() as unknown as JobRow[],
    raise: (id, epoch, job) => changed(raise.run(id, epoch, job)),
    end: (id, epoch, state, ending) => changed(end.run(id, epoch, state, ending, now().toISOString())),
    attempts: (id) => attempts.all(id) as unknown as AttemptRow[],
    note: (id, { lease, epoch, attempt, worker, ending }) =>
      void note.run(id, lease, epoch, attempt, worker, ending, now().toISOString()),
    told: (id, lease, seq) => changed(told.run(id, lease, seq)),
    forget: (before) => Number(forget.run(before).changes),
  };
}
