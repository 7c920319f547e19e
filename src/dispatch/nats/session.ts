import { setTimeout as sleep } from "node:timers/promises";
import type { NatsConnection } from "@nats-io/transport-node";
import { messageOf } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import type { Jobs, OpenJob } from "../jobs.ts";
import type { Blobs, Job } from "../port.ts";
import { createBlobs } from "./blobs.ts";
import { cancelLease } from "./cancel.ts";
import { createEndings } from "./endings.ts";
import { createHearing } from "./hearing.ts";
import { createLeases } from "./leases.ts";
import { createPublishing } from "./publishing.ts";
import { answerQuestions } from "./questions.ts";
import { bindCluster } from "./streams.ts";
import { createSweeper } from "./sweeper.ts";

export interface SessionDeps {
  /** Stays open when the session ends. */
  connection: NatsConnection;
  jobs: Jobs;
  /** The pools that somebody serves. */
  served: () => readonly string[];
  leaseMs: number;
  log: Log;
}

const TIMEOUT_MS = 5_000;
const RETRY_MS = 500;

/** The daemon's side of one connection: jobs go out through it, and what workers say of them comes in. */
export async function openSession({ connection: nc, jobs, served, leaseMs, log }: SessionDeps) {
  const cluster = await bindCluster(nc, TIMEOUT_MS);
  const leases = createLeases(cluster.leases, TIMEOUT_MS);
  const publishing = createPublishing({ cluster, leases, jobs, served, leaseMs, log });
  const endings = createEndings({ cluster, jobs, log });
  const hearing = createHearing({ cluster, jobs, endings, log });
  const sweeper = createSweeper({ cluster, leases, jobs, publishing, endings, leaseMs, log });
  const questions = answerQuestions({ cluster, leases, jobs, log });
  let syncing: Promise<void> = Promise.resolve();
  let closed = false;

  /** At the start and after every time that the server was away: it may have lost everything. */
  function sync(): Promise<void> {
    if (closed) return syncing;
    syncing = syncing.then(async () => {
      while (!closed && !nc.isClosed()) {
        try {
          await publishing.ensure();
          await hearing.restart();
          await sweeper.sweep();
          return;
        } catch (error) {
          if (closed || nc.isClosed()) return;
          log.warn("the cluster could not be brought up to date; trying again", { error: messageOf(error) });
          await sleep(RETRY_MS);
        }
      }
    });
    return syncing;
  }

  void (async () => {
    for await (const { type } of nc.status()) if (type === "reconnect") void sync();
  })();
  const look = async () => {
    await publishing.ensurePools();
    await sweeper.sweep();
  };
  const timer = setInterval(() => void look().catch(() => undefined), leaseMs);
  void sync();

  return {
    sync,
    /** What could not be published now is found missing by the next look. */
    async publish(open: OpenJob): Promise<void> {
      if (!(await publishing.publish(open))) void sync();
    },
    publishAgain: publishing.again,
    /** "over": there is nobody to be told, and nothing more will come of it. */
    async cancel(job: Job): Promise<"reached" | "before start" | "gone" | "ended" | "over"> {
      const how = await cancelLease({ nc, leases }, job);
      return how === "ended" && !(await leases.read(job)) ? "over" : how;
    },
    clear: endings.clear,
    blobs: (pool: string): Blobs => createBlobs(cluster.js, pool),
    async close(): Promise<void> {
      closed = true;
      clearInterval(timer);
      questions.stop();
      await hearing.close();
      await Promise.all([syncing, endings.settled()]);
    },
  };
}
export type Session = Awaited<ReturnType<typeof openSession>>;
