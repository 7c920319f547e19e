import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import type { Jobs, OpenJob } from "../jobs.ts";
import { gaveUp, type Job } from "../port.ts";
import { createBlobs } from "./blobs.ts";
import { dropSubject, type Leases, unclaimed } from "./leases.ts";
import { ANY, STEPS, stepSubject } from "./names.ts";
import { type EnsureDeps, ensurePool, ensureStreams } from "./streams.ts";

export interface PublishingDeps extends EnsureDeps {
  leases: Leases;
  jobs: Jobs;
  /** The pools that somebody serves. */
  served: () => readonly string[];
  log: Log;
}

const MAX_SPEC = 200_000;
const BEGIN_MS = 5_000;

/** Puts jobs where workers find them. What cannot be published now is on disk, and published by a later sweep. */
export function createPublishing({ cluster, leaseMs, leases, jobs, served, log }: PublishingDeps) {
  const { js, jsm } = cluster;
  const made = new Map<string, Promise<void>>();
  const under = new Set<string>();
  const begun = createOnce();

  /** Made once for all who ask at the same time. */
  function pool(name: string): Promise<void> {
    const before = made.get(name);
    if (before) return before;
    const now = ensurePool({ cluster, leaseMs }, name).catch((error: unknown) => {
      made.delete(name);
      throw error;
    });
    made.set(name, now);
    return now;
  }

  /** Servers take a million bytes in a message unless they are told otherwise. */
  async function light(job: Job): Promise<Job> {
    const text = JSON.stringify(job.spec);
    if (text.length <= MAX_SPEC) return job;
    const name = `spec-${job.id}.${job.epoch}`;
    return { ...job, spec: {}, specAt: await createBlobs(js, job.pool).put(name, new TextEncoder().encode(text)) };
  }

  /** Whether it is where workers find it, or needs to be no more. */
  async function publish({ job, attempts }: OpenJob): Promise<boolean> {
    if (attempts.length >= job.limits.maxAttempts) {
      jobs.end(job.id, job.epoch, { state: "failed", error: gaveUp(attempts.length) });
      return true;
    }
    under.add(job.id);
    try {
      // What is submitted in the first moment finds no streams yet.
      await Promise.race([begun.done, sleep(BEGIN_MS, undefined, { ref: false })]);
      await pool(job.pool);
      // A message of an older epoch would keep this one out.
      if (job.epoch > 1) await dropSubject(jsm, STEPS, stepSubject(job));
      await leases.create(job, unclaimed(attempts));
      await js.publish(stepSubject(job), JSON.stringify(await light(job)), { msgID: `${job.id}.${job.epoch}` });
      return true;
    } catch (error) {
      log.warn("a job could not be published yet", { job: job.id, error: messageOf(error) });
      return false;
    } finally {
      under.delete(job.id);
    }
  }

  /** Those of the jobs there are, and of the workers, so that none of these looks for its pool in vain. */
  async function ensurePools(): Promise<void> {
    for (const name of new Set([ANY, ...jobs.open().map(({ job }) => job.pool), ...served()])) await pool(name);
  }

  return {
    publish,
    ensurePools,
    /** Whether a job is being published just now. */
    isUnderWay: (id: string) => under.has(id),
    async ensure(): Promise<void> {
      made.clear();
      await ensureStreams(cluster);
      await ensurePools();
      begun.tell();
    },
    /** Publishes a job anew: whatever was said of it before counts no more. */
    async again(id: string): Promise<void> {
      const open = jobs.raise(id);
      if (open) await publish(open);
    },
  };
}
export type Publishing = ReturnType<typeof createPublishing>;

function createOnce(): { done: Promise<void>; tell: () => void } {
  let tell: () => void = () => undefined;
  const done = new Promise<void>((resolve) => {
    tell = resolve;
  });
  return { done, tell };
}
