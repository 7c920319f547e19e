import { missing } from "../../lib/errors.ts";
import { quoted } from "../../lib/quoted.ts";
import { type AttemptRow, createDispatchRows, type JobRow } from "../../store/dispatch.ts";
import type { Store } from "../../store/open.ts";
import { readJson } from "../../store/read-json.ts";
import { type Answering, Attempt, CANCELLED, Job, JobEnd, type JobEvent, type Outcome, type Question } from "./port.ts";

/** How long an ended job can still be looked up. */
const KEPT_DAYS = 14;

/** An open job at its current epoch. */
export interface OpenJob {
  job: Job;
  attempts: Attempt[];
}

/** The daemon's table of jobs: the only source of truth, whoever runs them. Resolves `ended` and publishes job events. */
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

  /** Ends a job, but only if this epoch is still the open one. */
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
    /** The job as it now stands; undefined if it is already stored with this epoch or a later one. */
    add(job: Job): Job | undefined {
      return store.transaction(() => {
        if (rows.insert(job.id, job.epoch, JSON.stringify(job))) return job;
        return rows.raise(job.id, job.epoch, JSON.stringify(job)) ? job : undefined;
      });
    },
    open: (): OpenJob[] => rows.open().flatMap(openOf),
    /** Oldest first; jobs that `leaveOut` accepts are not even read. */
    *eachOpen(leaveOut: (id: string) => boolean): Generator<OpenJob> {
      for (const row of rows.open()) if (!leaveOut(row.id)) yield* openOf(row);
    },
    find(id: string): OpenJob | undefined {
      const row = rows.find(id);
      return row?.state === "open" ? openOf(row)[0] : undefined;
    },
    /** Also finds a job that has ended. */
    known: (id: string): Job | undefined => {
      const row = rows.find(id);
      return row && openOf(row)[0]?.job;
    },
    serve(answer: Answering): () => void {
      answerers.add(answer);
      return () => void answerers.delete(answer);
    },
    /** Undefined if no one here knows the job yet. */
    answer(question: Question): Promise<unknown> | undefined {
      for (const answer of answerers) {
        const answered = answer(question);
        if (answered) return answered;
      }
      return undefined;
    },
    /** Raises the job's epoch; its unfinished attempts become `lease_expired`, because nobody can know how they ended. */
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
    /** Cancels every open job that is not in the list; returns the others. */
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
    /** Whether anything listens to events. */
    hasListeners: () => listeners.size > 0,
    /** Publishes an event. A lasting event is published once, in the transaction that records it. */
    publish(event: JobEvent): void {
      const notify = () => {
        for (const listener of listeners) listener(event);
      };
      if (event.body.kind === "delta") {
        notify();
        return;
      }
      store.transaction(() => {
        const { job, epoch, attempt, lease, worker, seq } = event;
        if (!rows.find(job)) return;
        rows.note(job, { epoch, attempt, lease, worker, ending: null });
        if (rows.told(job, lease, seq)) notify();
      });
    },
    openEpoch: rows.openEpoch,
  };
}
export type Jobs = ReturnType<typeof createJobs>;

const toAttempt = ({ ending, ...attempt }: AttemptRow): Attempt =>
  Attempt.parse({ ...attempt, ...(ending !== null && { end: ending }) });
