import { randomUUID } from "node:crypto";
import type { Log } from "../../../lib/log.ts";
import type { Jobs } from "../jobs.ts";
import { type Attempt, CANCELLED, gaveUp, type Job } from "../port.ts";

/** A job that a worker was given. */
export interface Lease {
  job: Job;
  attempt: Attempt;
  earlier: Attempt[];
  /** Whether its worker has taken it on: only then it counts as begun, and is in the database. */
  isBegun: boolean;
  /** When its worker was last heard of, by the clock that nobody sets. */
  heardAt: number;
  /** Set when the job is not wanted any more; called once its worker knows. */
  cancel: (() => void) | undefined;
}

export interface LeasesDeps {
  jobs: Jobs;
  log: Log;
  /** A job is free again. */
  onFree: () => void;
}

/** A worker counts its lease from before it asked, the daemon from when it heard; this much more is for what lies between. */
const GRACE = 1.25;
/** How long a job that was given may take to be taken on. */
const BEGIN_MS = 10_000;
const LOOKS = 10;

/** Who has which job. The database has every one that was begun, so the next life of the daemon knows them too. */
export function createLeases({ jobs, log, onFree }: LeasesDeps) {
  const leases = new Map<string, Lease>();
  let lookedAt = performance.now();

  const ofJob = (id: string) => [...leases.values()].find(({ job }) => job.id === id);

  /** The end of an attempt that came to nothing: another begins the job. */
  function lose({ job, attempt, isBegun, cancel }: Lease): void {
    leases.delete(attempt.lease);
    if (isBegun) jobs.note(job.id, { ...attempt, end: "lease_expired" });
    if (cancel) jobs.end(job.id, job.epoch, { state: "cancelled", error: CANCELLED });
    log.info("a worker has lost a job", { job: job.id, worker: attempt.worker, begun: isBegun });
    onFree();
  }

  return {
    ofJob,
    lose,
    /** What a worker holds under this lease; undefined where that is not its own. Being asked is being heard of. */
    find(lease: string, worker: string): Lease | undefined {
      const found = leases.get(lease);
      if (!found || found.attempt.worker !== worker || jobs.openEpoch(found.job.id) !== found.job.epoch) return undefined;
      found.heardAt = performance.now();
      return found;
    },
    /** Takes a job on: from here it is on record. */
    begin(lease: Lease): void {
      if (lease.isBegun) return;
      jobs.note(lease.job.id, lease.attempt);
      lease.isBegun = true;
    },
    /** Gives the oldest job of these pools that nobody has. */
    grant(worker: string, pools: readonly string[]): Lease | undefined {
      if (pools.length === 0) return undefined;
      const given = new Set([...leases.values()].map(({ job }) => job.id));
      for (const { job, attempts } of jobs.eachOpen((id) => given.has(id))) {
        if (!pools.includes(job.pool)) continue;
        if (attempts.length >= job.limits.maxAttempts) {
          jobs.end(job.id, job.epoch, { state: "failed", error: gaveUp(attempts.length) });
          continue;
        }
        const attempt = { epoch: job.epoch, attempt: attempts.length + 1, lease: randomUUID(), worker };
        const lease = { job, attempt, earlier: attempts, isBegun: false, heardAt: performance.now(), cancel: undefined };
        leases.set(attempt.lease, lease);
        return lease;
      }
      return undefined;
    },
    /** What a worker was given and does not have: it never arrived, or its worker was started anew. */
    dropMissing(worker: string, held: readonly string[]): void {
      for (const each of [...leases.values()])
        if (each.attempt.worker === worker && !held.includes(each.attempt.lease)) lose(each);
    },
    /** Over, in whatever way. */
    drop: (lease: string) => void leases.delete(lease),
    /** What earlier lives gave to workers, each of which is given the whole time to be heard of. */
    restore(): void {
      for (const { job, attempts } of jobs.open()) {
        const attempt = attempts.at(-1);
        if (!attempt || attempt.end !== undefined || attempt.epoch !== job.epoch) continue;
        const known = leases.get(attempt.lease);
        if (known) known.heardAt = performance.now();
        else
          leases.set(attempt.lease, {
            ...{ job, attempt, earlier: attempts.slice(0, -1), isBegun: true, heardAt: performance.now(), cancel: undefined },
          });
      }
      lookedAt = performance.now();
    },
    /**
     * Looks now and again for workers that are silent. Time in which this process stood still, or had no connection, does
     * not count: nobody could be given their jobs meanwhile.
     */
    watch(leaseMs: number, isConnected: () => boolean): NodeJS.Timeout {
      const everyMs = Math.max(20, leaseMs / LOOKS);
      return setInterval(() => {
        const now = performance.now();
        const stoodStillMs = isConnected() ? Math.max(0, now - lookedAt - 2 * everyMs) : now - lookedAt;
        lookedAt = now;
        for (const each of [...leases.values()]) {
          each.heardAt += stoodStillMs;
          const leaseOver = each.job.limits.leaseMs * GRACE;
          if (now - each.heardAt > (each.isBegun ? leaseOver : Math.min(BEGIN_MS, leaseOver))) lose(each);
        }
      }, everyMs);
    },
  };
}
export type Leases = ReturnType<typeof createLeases>;
