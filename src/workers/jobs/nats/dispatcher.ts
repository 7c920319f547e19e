import { setTimeout as sleep } from "node:timers/promises";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Log } from "../../../lib/log.ts";
import type { Worker as WorkerInfo } from "../../../protocol/workers.ts";
import type { Store } from "../../../store/open.ts";
import { createJobs } from "../jobs.ts";
import { CANCELLED, type Dispatcher, Job } from "../port.ts";
import { createBlobStore } from "./blob-store.ts";
import type { Desk } from "./desk.ts";
import { createLeases } from "./leases.ts";
import { poolsOf, wakeSubject } from "./names.ts";
import { openSession, type Session } from "./session.ts";

export interface NatsDeps {
  store: Store;
  /** All admitted workers, as they are now. */
  workers: () => readonly WorkerInfo[];
  /** The folder for blobs that travel with jobs. */
  folder: string;
  log: Log;
  /** How long a worker may be silent before another takes over its job. */
  leaseMs?: number | undefined;
}

/** A dispatcher that outlives connections: without one, jobs wait in the table. */
export interface NatsDispatcher extends Dispatcher {
  /** Serves workers through this connection until `leave`, which does not close it. One connection at a time. */
  attend(connection: NatsConnection, desk: Desk): { leave(): void };
  /** Frees this worker's jobs for others; whatever it still reports of them is refused. */
  takeBackFrom(worker: string): void;
}

const LEASE_MS = 60_000;
/** How long a worker has to learn that a job is cancelled. */
const HEAR_MS = 1_500;

/** Has jobs done by workers on other hosts. The daemon's database is the source of truth; the NATS server stores nothing. */
export function createNatsDispatcher({ store, workers, folder, log, leaseMs = LEASE_MS }: NatsDeps): NatsDispatcher {
  const jobs = createJobs(store);
  const blobs = createBlobStore(folder);
  const leases = createLeases({ jobs, log, onFree: () => current?.session.handOut() });
  let current: { session: Session; connection: NatsConnection; watching: NodeJS.Timeout } | undefined;

  const isThere = ({ state }: WorkerInfo) => state === "ready" || state === "busy";
  const poolsFor = (name: string): string[] => {
    const found = workers().find((each) => each.name === name && each.state !== "draining");
    return found ? poolsOf(name, found.labels) : [];
  };

  function leave(): void {
    const last = current;
    current = undefined;
    clearInterval(last?.watching);
    last?.session.close();
  }

  /** Whether the worker has learned that its job is cancelled. */
  async function tellWorkerToCancel(lease: NonNullable<ReturnType<typeof leases.ofJob>>): Promise<boolean> {
    const heard = new Promise<true>((tell) => {
      lease.cancel = () => tell(true);
    });
    if (!current || current.connection.isClosed()) return false;
    current.connection.publish(wakeSubject(lease.attempt.worker));
    return Promise.race([heard, sleep(HEAR_MS, false as const)]);
  }

  return {
    attend(connection, desk) {
      leave();
      leases.restore();
      const session = openSession({ connection, desk, jobs, leases, blobs, poolsFor, log });
      let isConnected = true;
      void (async () => {
        for await (const { type } of connection.status()) {
          if (type === "disconnect") isConnected = false;
          if (type !== "reconnect") continue;
          isConnected = true;
          // Workers that were told that no daemon listens kept working.
          leases.restore();
        }
      })();
      const opened = { session, connection, watching: leases.watch(leaseMs, () => isConnected) };
      current = opened;
      return { leave: () => (current === opened ? leave() : undefined) };
    },
    takeBackFrom(worker) {
      for (const { job, attempts } of jobs.open()) {
        const lease = leases.ofJob(job.id);
        const last = attempts.at(-1);
        const isHeld = lease?.attempt.worker === worker || (last?.worker === worker && last.end === undefined);
        if (!isHeld) continue;
        if (lease) leases.drop(lease.attempt.lease);
        jobs.raise(job.id);
      }
      current?.session.handOut();
    },
    async submit(given) {
      if (jobs.add(Job.parse(given))) current?.session.handOut();
    },
    ended: jobs.ended,
    async cancel(id) {
      const open = jobs.find(id);
      if (!open) return "gone";
      const lease = leases.ofJob(id);
      if (lease?.isBegun && (await tellWorkerToCancel(lease))) return "reached";
      if (lease) leases.drop(lease.attempt.lease);
      jobs.end(id, open.job.epoch, { state: "cancelled", error: CANCELLED });
      const last = open.attempts.at(-1);
      return lease?.isBegun || (last && last.end === undefined) || !current ? "gone" : "before start";
    },
    listen: jobs.listen,
    serve: jobs.serve,
    job: jobs.known,
    leaseMs,
    open: () => jobs.open().map(({ job }) => job),
    async reconcile(wanted) {
      const kept = jobs.wanted(wanted).map(({ job }) => job.id);
      log.debug("jobs of an earlier life are taken up", { jobs: kept });
      current?.session.handOut();
    },
    attempts: jobs.attempts,
    waiting() {
      const pools = workers()
        .filter(isThere)
        .flatMap(({ name, labels }) => poolsOf(name, labels));
      return jobs
        .open()
        .filter(({ attempts }) => attempts.length === 0 || attempts.at(-1)?.end !== undefined)
        .map(({ job: { id, pool } }) => ({ id, pool, served: pools.includes(pool) }));
    },
    workers: async () => [...workers()],
    blobs: blobs.of,
    forgetBlobs: blobs.clear,
    async close() {
      leave();
    },
  };
}
