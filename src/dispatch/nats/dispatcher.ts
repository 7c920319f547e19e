import type { NatsConnection } from "@nats-io/transport-node";
import { messageOf } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import type { Worker as WorkerInfo } from "../../protocol/workers.ts";
import type { Store } from "../../store/open.ts";
import { createJobs, type OpenJob } from "../jobs.ts";
import { type Blobs, CANCELLED, type Dispatcher, Job } from "../port.ts";
import { poolsOf } from "./names.ts";
import { openSession, type Session } from "./session.ts";

export interface NatsDeps {
  store: Store;
  /** Everybody who was let in, as they are now. */
  workers: () => readonly WorkerInfo[];
  log: Log;
  /** How long a worker may be silent before another takes its job over. */
  leaseMs?: number | undefined;
}

/** One that outlives connections: without any, jobs are kept in the table and wait. */
export interface NatsDispatcher extends Dispatcher {
  /** Works through this connection until it is left; that does not close it. One at a time. */
  attend(connection: NatsConnection): Promise<{ leave(): Promise<void> }>;
  /** Has others begin what this worker had under way; whatever it still says of it is refused. */
  takeBackFrom(worker: string): Promise<void>;
}

const LEASE_MS = 60_000;

/** Has jobs done by workers on other hosts. The table here stays the truth: what the server loses is published anew from it. */
export function createNatsDispatcher({ store, workers, log, leaseMs = LEASE_MS }: NatsDeps): NatsDispatcher {
  const jobs = createJobs(store);
  let session: Session | undefined;
  let awaiting: ((next: Session) => void)[] = [];

  const served = () =>
    workers()
      .filter(({ state }) => state === "ready" || state === "busy")
      .flatMap(({ name, labels }) => poolsOf(name, labels));
  const attended = () => session ?? new Promise<Session>((resolve) => void awaiting.push(resolve));

  function endHere(job: Job): void {
    const ended = jobs.end(job.id, job.epoch, { state: "cancelled", error: CANCELLED });
    if (ended) void session?.clear(job);
  }

  /** Those who have bytes to send or to fetch wait until there is a way. */
  function blobs(pool: string): Blobs {
    return {
      put: async (name, bytes) => (await attended()).blobs(pool).put(name, bytes),
      get: async (ref) => (await attended()).blobs(pool).get(ref),
      remove: async (name) => session?.blobs(pool).remove(name),
    };
  }

  async function leave(): Promise<void> {
    const last = session;
    session = undefined;
    await last?.close();
  }

  return {
    async attend(connection) {
      const opened = await openSession({ connection, jobs, served, leaseMs, log });
      session = opened;
      for (const tell of awaiting) tell(opened);
      awaiting = [];
      return { leave: () => (session === opened ? leave() : opened.close()) };
    },
    async takeBackFrom(worker) {
      const isHeld = ({ attempts }: OpenJob) => attempts.at(-1)?.worker === worker && attempts.at(-1)?.end === undefined;
      for (const { job } of jobs.open().filter(isHeld)) await session?.publishAgain(job.id);
    },
    async submit(given) {
      const job = jobs.add(Job.parse(given));
      // It is on disk already.
      if (job) await session?.publish({ job, attempts: jobs.attempts(job.id) });
    },
    ended: jobs.ended,
    async cancel(id) {
      const open = jobs.find(id);
      if (!open) return "gone";
      try {
        const how = (await session?.cancel(open.job)) ?? "over";
        if (how === "reached") return how;
        // Its record has an end now, or none was there: either way nothing more will come of it.
        if (how !== "ended") endHere(open.job);
        return how === "before start" ? how : "gone";
      } catch (error) {
        log.warn("a job was cancelled while the cluster is away", { job: id, error: messageOf(error) });
        endHere(open.job);
        return "gone";
      }
    },
    listen: jobs.listen,
    serve: jobs.serve,
    job: jobs.known,
    leaseMs,
    open: () => jobs.open().map(({ job }) => job),
    async reconcile(wanted) {
      const kept = jobs.wanted(wanted).map(({ job }) => job.id);
      log.debug("jobs of an earlier life are taken up", { jobs: kept });
      await session?.sync();
    },
    attempts: jobs.attempts,
    waiting() {
      const pools = served();
      return jobs
        .open()
        .filter(({ attempts }) => attempts.length === 0 || attempts.at(-1)?.end !== undefined)
        .map(({ job: { id, pool } }) => ({ id, pool, served: pools.includes(pool) }));
    },
    workers: async () => [...workers()],
    blobs,
    close: leave,
  };
}
