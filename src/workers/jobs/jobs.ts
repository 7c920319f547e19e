import { missing } from "../../lib/errors.ts";
import { quoted } from "../../lib/quoted.ts";
import { type AttemptRow, createDispatchRows, type JobRow } from "../../store/dispatch.ts";
import type { Store } from "../../store/open.ts";
import { readJson } from "../../store/read-json.ts";
import { type Answering, Attempt, CANCELLED, Job, JobEnd, type JobEvent, type Outcome, type Question } from "./port.ts";

/** How long an ended job can still be asked for. */
const KEPT_DAYS = 14;

/** A job that is open, with the epoch that counts now. */
export interface OpenJob {
  job: Job;
  attempts: Attempt[];
}

/** The daemon's own table of jobs: the one truth, whoever does them. Also tells those who wait for an end. */
export function createJobs(store: Store) {
  const rows = createDispatchRows(store);
  const waiters = new Map<string, ((end: JobEnd) => void)[]>();
  const listeners = new Set<(event: JobEvent) => void>();
  const answerers = new Set<Answering>();
  rows.forget(new Date(Date.now() - KEPT_DAYS * 86_400_000).toISOString());

  const attempts = (id: string): Attempt[] => rows.attempts(id).map(toAttempt);
  const endOf = (row: JobRow): JobEnd =>
    readJson(JobEnd, row.ending) ?? {
      state: "failed",
      error: { code: "unreadable", message: "how this ended was written by another version of IO." },
      attempts: attempts(row.id),
    };
  const openOf = (row: JobRow): OpenJob[] => {
    const job = readJson(Job, row.job);
    return job ? [{ job: { ...job, epoch: row.epoch }, attempts: attempts(row.id) }] : [];
  };

  /** The end of a job, if this is the epoch that is open. */
  function end(id: string, epoch: number, outcome: Outcome): boolean {
    const ending = store.transaction(() => {
      for (const { ending, ...attempt } of rows.attempts(id))
        if (ending === null) rows.note(id, { ...attempt, ending: "lease_expired" });
      const whole: JobEnd = { ...outcome, attempts: attempts(id) };
      return rows.end(id, epoch, outcome.state, JSON.stringify(whole)) ? whole : undefined;
    });
    if (!ending) return false;
    for (const tell of waiters.get(id) ?? []) tell(ending);
    waiters.delete(id);
    return true;
  }

  return {
    attempts,
    end,
    /** The job as it is to be done now; undefined if it is here already with this epoch or a later one. */
    add(job: Job): Job | undefined {
      return store.transaction(() => {
        if (rows.insert(job.id, job.epoch, JSON.stringify(job))) return job;
        return rows.raise(job.id, job.epoch, JSON.stringify(job)) ? job : undefined;
      });
    },
    open: (): OpenJob[] => rows.open().flatMap(openOf),
    /** Oldest first; those that are left out are not even read. */
    *eachOpen(leaveOut: (id: string) => boolean): Generator<OpenJob> {
      for (const row of rows.open()) if (!leaveOut(row.id)) yield* openOf(row);
    },
    find(id: string): OpenJob | undefined {
      const row = rows.find(id);
      return row?.state === "open" ? openOf(row)[0] : undefined;
    },
    /** Also of one that has ended. */
    known: (id: string): Job | undefined => {
      const row = rows.find(id);
      return row && openOf(row)[0]?.job;
    },
    serve(answer: Answering): () => void {
      answerers.add(answer);
      return () => void answerers.delete(answer);
    },
    /** Undefined where nobody knows the job yet. */
    answer(question: Question): Promise<unknown> | undefined {
      for (const answer of answerers) {
        const answered = answer(question);
        if (answered) return answered;
      }
      return undefined;
    },
    /** What an earlier life began and nobody can know the end of is over; the job gets a later epoch. */
    raise(id: string): OpenJob | undefined {
      return store.transaction(() => {
        const row = rows.find(id);
        if (row?.state !== "open") return undefined;
        for (const { ending, ...attempt } of rows.attempts(id))
          if (ending === null) rows.note(id, { ...attempt, ending: "lease_expired" });
        rows.raise(id, row.epoch + 1, row.job);
        return openOf({ ...row, epoch: row.epoch + 1 })[0];
      });
    },
    note(id: string, { end: ending = undefined, ...attempt }: Attempt): void {
      rows.note(id, { ...attempt, ending: ending ?? null });
    },
    /** Ends every open job that nobody wants any more; answers with the others. */
    wanted(ids: readonly string[]): OpenJob[] {
      const all = rows.open().flatMap(openOf);
      for (const { job } of all) if (!ids.includes(job.id)) end(job.id, job.epoch, { state: "cancelled", error: CANCELLED });
      return all.filter(({ job }) => ids.includes(job.id));
    },
    ended(id: string): Promise<JobEnd> {
      const row = rows.find(id);
      if (!row) return Promise.reject(missing(`There is no job with the id ${quoted(id, 100)}.`));
      if (row.state !== "open") return Promise.resolve(endOf(row));
      return new Promise((resolve) => waiters.set(id, [...(waiters.get(id) ?? []), resolve]));
    },
    listen(to: (event: JobEvent) => void): () => void {
      listeners.add(to);
      return () => void listeners.delete(to);
    },
    /** Whether there is anybody to tell. */
    isHeard: () => listeners.size > 0,
    /** Tells an event; a lasting one once, in the transaction that remembers that it was told. */
    tell(event: JobEvent): void {
      const tellAll = () => {
        for (const listener of listeners) listener(event);
      };
      if (event.body.kind === "delta") {
        tellAll();
        return;
      }
      store.transaction(() => {
        const { job, epoch, attempt, lease, worker, seq } = event;
        if (!rows.find(job)) return;
        rows.note(job, { epoch, attempt, lease, worker, ending: null });
        if (rows.told(job, lease, seq)) tellAll();
      });
    },
    openEpoch: rows.openEpoch,
  };
}
export type Jobs = ReturnType<typeof createJobs>;

const toAttempt = ({ ending, ...attempt }: AttemptRow): Attempt =>
  Attempt.parse({ ...attempt, ...(ending !== null && { end: ending }) });
