import { createHash, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "../lib/log.ts";
import type { Store } from "../store/open.ts";
import { createJobs, type OpenJob } from "./jobs.ts";
import { type Attempt, type Blobs, CANCELLED, type Dispatcher, gaveUp, Job, type JobEvent, type Worker } from "./port.ts";
import { runJob, type Stop } from "./run-job.ts";

export interface LocalDeps {
  store: Store;
  worker: Worker;
  log: Log;
  /** How many jobs are done at once. */
  capacity?: number;
}

const HERE = "local";
const RETRY_MS = 250;

/** Does every job in this process: no server, the attempts in the database. */
export function createLocalDispatcher({ store, worker, log, capacity = Number.POSITIVE_INFINITY }: LocalDeps): Dispatcher {
  const jobs = createJobs(store);
  const blobs = createMemoryBlobs();
  const running = new Map<string, { stop: AbortController; over: Promise<void> }>();
  let waiting: OpenJob[] = [];
  let closed = false;

  function next(): void {
    while (!closed && running.size < capacity) {
      const open = waiting.shift();
      if (!open) return;
      begin(open);
    }
  }

  function begin({ job, attempts: earlier }: OpenJob): void {
    const { id, epoch } = job;
    if (earlier.length >= job.limits.maxAttempts) {
      jobs.end(id, epoch, { state: "failed", error: gaveUp(earlier.length) });
      return;
    }
    const attempt: Attempt = { epoch, attempt: earlier.length + 1, lease: randomUUID(), worker: HERE };
    jobs.note(id, attempt);
    const stop = new AbortController();
    let seq = 0;
    const tell = (body: JobEvent["body"]) => jobs.tell({ job: id, ...attempt, seq, body });
    const life = {
      ...{ attempt, earlier, blobs },
      tell,
      record: async (body: JobEvent["body"]) => {
        seq += 1;
        await untilTold(() => tell(body), stop.signal);
      },
      ask: (data: unknown) => untilAnswered(() => jobs.answer({ job, attempt, data, signal: stop.signal }), stop.signal),
    };
    const over = runJob({ worker, job, life, stop, log }).then((outcome) => {
      running.delete(id);
      // What a later life will begin again has no end yet.
      if (stop.signal.reason !== ("lost" satisfies Stop)) {
        jobs.note(id, { ...attempt, end: outcome.state });
        jobs.end(id, epoch, outcome);
      }
      next();
    });
    running.set(id, { stop, over });
  }

  return {
    async submit(given) {
      const job = jobs.add(Job.parse(given));
      if (!job) return;
      waiting.push({ job, attempts: jobs.attempts(job.id) });
      next();
    },
    ended: jobs.ended,
    async cancel(id) {
      const at = running.get(id);
      if (at) {
        at.stop.abort("cancelled" satisfies Stop);
        return "reached";
      }
      waiting = waiting.filter(({ job }) => job.id !== id);
      const open = jobs.find(id);
      return open && jobs.end(id, open.job.epoch, { state: "cancelled", error: CANCELLED }) ? "before start" : "gone";
    },
    listen: jobs.listen,
    serve: jobs.serve,
    job: jobs.known,
    open: () => jobs.open().map(({ job }) => job),
    leaseMs: Number.POSITIVE_INFINITY,
    async reconcile(wanted) {
      for (const { job } of jobs.wanted(wanted)) {
        const known = running.has(job.id) || waiting.some((each) => each.job.id === job.id);
        const open = known ? undefined : jobs.raise(job.id);
        if (open) waiting.push(open);
      }
      next();
    },
    attempts: jobs.attempts,
    waiting: () => waiting.map(({ job }) => ({ id: job.id, pool: job.pool, served: true })),
    workers: async () => [],
    blobs: () => blobs,
    async close() {
      closed = true;
      const all = [...running.values()];
      for (const { stop } of all) stop.abort("lost" satisfies Stop);
      await Promise.all(all.map(({ over }) => over));
    },
  };
}

/** Again until it is on disk: the database may be another's for a moment. */
async function untilTold(tell: () => void, signal: AbortSignal): Promise<void> {
  for (;;) {
    signal.throwIfAborted();
    try {
      return tell();
    } catch {
      await sleep(RETRY_MS);
    }
  }
}

/** Whoever answers for the job may be about to come. */
async function untilAnswered(ask: () => Promise<unknown> | undefined, signal: AbortSignal): Promise<unknown> {
  for (;;) {
    signal.throwIfAborted();
    const answered = ask();
    if (answered) return answered;
    await sleep(RETRY_MS);
  }
}

function createMemoryBlobs(): Blobs {
  const kept = new Map<string, Uint8Array>();
  return {
    async put(name, bytes) {
      kept.set(name, bytes);
      return { name, sha256: createHash("sha256").update(bytes).digest("hex"), size: bytes.length };
    },
    async remove(name) {
      kept.delete(name);
    },
    async get({ name }) {
      const bytes = kept.get(name);
      if (!bytes) throw new Error(`there is no blob ${name}`);
      return bytes;
    },
  };
}
