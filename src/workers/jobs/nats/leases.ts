import { randomUUID } from "node:crypto";
import type { Log } from "../../../lib/log.ts";
import type { Jobs } from "../jobs.ts";
import { type Attempt, CANCELLED, gaveUp, type Job } from "../port.ts";

/** A job that was granted to a worker. */
export interface Lease {
  job: Job;
  attempt: Attempt;
  earlier: Attempt[];
  /** Whether the worker has started it: only then is the attempt in the database. */
  isBegun: boolean;
  /** When the worker last contacted the daemon, by the monotonic clock. */
  heardAt: number;
  /** Set when the job was cancelled; called once its worker knows. */
  cancel: (() => void) | undefined;
}

export interface LeasesDeps {
  jobs: Jobs;
  log: Log;
  /** Called when a job can be granted again. */
  onFree: () => void;
}

/**
 * A worker measures its lease from before it asked, the daemon from when it received the question; this factor covers the
 * difference.
 */
const GRACE = 1.25;
/** How long a worker may take to start a granted job. */
const BEGIN_MS = 10_000;
const CHECKS_PER_LEASE = 10;

/** Who holds which job. Started attempts are in the database too, so a restarted daemon knows them. */
export function createLeases({ jobs, log, onFree }: LeasesDeps) {
  const leases = new Map<string, Lease>();
  let lastCheckAt = performance.now();

  const ofJob = (id: string) => [...leases.values()].find(({ job }) => job.id === id);

  /** Ends an attempt that came to nothing, so that another worker can start the job. */
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
    /** The worker's own lease with this id, or undefined. Asking counts as a sign of life. */
    find(lease: string, worker: string): Lease | undefined {
      const found = leases.get(lease);
      if (!found || found.attempt.worker !== worker || jobs.openEpoch(found.job.id) !== found.job.epoch) return undefined;
      found.heardAt = performance.now();
      return found;
    },
    /** Records that the worker has started the job. */
    begin(lease: Lease): void {
      if (lease.isBegun) return;
      jobs.note(lease.job.id, lease.attempt);
      lease.isBegun = true;
    },
    /** Grants the oldest free job of these pools. */
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
    /** Drops leases that the worker does not have: the grant never arrived, or the worker was restarted. */
    dropMissing(worker: string, held: readonly string[]): void {
      for (const each of [...leases.values()])
        if (each.attempt.worker === worker && !held.includes(each.attempt.lease)) lose(each);
    },
    /** Forgets a lease, however it ended. */
    drop: (lease: string) => void leases.delete(lease),
    /** Restores the leases of earlier daemons, each with its whole time to be renewed. */
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
      lastCheckAt = performance.now();
    },
    /**
     * Regularly ends the leases of silent workers. Time in which this process was suspended or disconnected does not count,
     * because workers could not renew then.
     */
    watch(leaseMs: number, isConnected: () => boolean): NodeJS.Timeout {
      const everyMs = Math.max(20, leaseMs / CHECKS_PER_LEASE);
      return setInterval(() => {
        const now = performance.now();
        const pausedMs = isConnected() ? Math.max(0, now - lastCheckAt - 2 * everyMs) : now - lastCheckAt;
        lastCheckAt = now;
        for (const each of [...leases.values()]) {
          each.heardAt += pausedMs;
          const leaseOver = each.job.limits.leaseMs * GRACE;
          if (now - each.heardAt > (each.isBegun ? leaseOver : Math.min(BEGIN_MS, leaseOver))) lose(each);
        }
      }, everyMs);
    },
  };
}
export type Leases = ReturnType<typeof createLeases>;
