import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import type { Jobs } from "../jobs.ts";
import { type Job, JobValue, type Outcome } from "../port.ts";
import { createBlobs } from "./blobs.ts";
import { dropLease, dropSubject, type Held, holderOf, type Lease } from "./leases.ts";
import { readRecordKey, recordKey, STEPS, stepSubject } from "./names.ts";
import type { Cluster } from "./streams.ts";

export interface EndingsDeps {
  cluster: Cluster;
  jobs: Jobs;
  log: Log;
}

/** How long the last events of a job are waited for before its end is told without them. */
const EVENTS_MS = 5_000;

/** Takes what records say into the table: who began a job, and how it ended. What does not fit the table is dropped. */
export function createEndings({ cluster: { js, jsm }, jobs, log }: EndingsDeps) {
  const ending = new Map<string, Promise<void>>();

  /** The message first: what is delivered of it later finds no record, and is over. */
  async function clear(job: Pick<Job, "pool" | "id" | "epoch">): Promise<void> {
    try {
      await dropSubject(jsm, STEPS, stepSubject(job));
      await dropLease(jsm, recordKey(job));
    } catch (error) {
      log.debug("what is left of a job is taken away later", { job: job.id, error: messageOf(error) });
    }
  }

  async function eventsOf(job: Job, { lease, told }: Lease): Promise<void> {
    const until = performance.now() + EVENTS_MS;
    while (lease !== "" && jobs.toldSoFar(job.id, lease) < told) {
      if (performance.now() > until) return log.error("events of a job are missing", { job: job.id, told });
      await sleep(10);
    }
  }

  async function outcomeOf(job: Job, { state, result, resultBlob, error }: Lease): Promise<Outcome | undefined> {
    if (state === "failed" || state === "cancelled")
      return { state, error: error ?? { code: "failed", message: "its worker did not say why." } };
    if (!resultBlob) return result && { state: "done", ...result };
    try {
      const bytes = await createBlobs(js, job.pool).get(resultBlob);
      return { state: "done", ...JobValue.parse(JSON.parse(new TextDecoder().decode(bytes))) };
    } catch (caught) {
      return { state: "failed", error: { code: "result_lost", message: `its result could not be read: ${messageOf(caught)}` } };
    }
  }

  async function finish(job: Job, { lease }: Held): Promise<void> {
    await eventsOf(job, lease);
    const outcome = await outcomeOf(job, lease);
    if (!outcome) return log.error("a worker said that a job is done, and not what it came to", { job: job.id });
    jobs.end(job.id, job.epoch, outcome);
    await clear(job);
  }

  return {
    clear,
    /** A record as it is now, under its key. */
    take(key: string, held: Held): void {
      const of = readRecordKey(key);
      if (!of) return;
      const open = jobs.find(of.id);
      if (!open || open.job.epoch !== of.epoch || open.job.pool !== of.pool) {
        log.info("what an older epoch, or a worker of an ended job, says is refused", { job: of.id, epoch: of.epoch });
        // A newer epoch has a message of its own under the same subject.
        void (open ? dropLease(jsm, key) : clear(of)).catch(() => undefined);
        return;
      }
      for (const attempt of [...held.lease.past, ...holderOf(held.lease, of.epoch)]) jobs.note(of.id, attempt);
      const { state } = held.lease;
      if (state === "open" || state === "running" || ending.has(key)) return;
      const one = finish(open.job, held)
        .catch((error: unknown) => log.error("the end of a job could not be written down", { job: of.id, error }))
        .finally(() => ending.delete(key));
      ending.set(key, one);
    },
    settled: () => Promise.all(ending.values()).then(() => undefined),
  };
}
export type Endings = ReturnType<typeof createEndings>;
