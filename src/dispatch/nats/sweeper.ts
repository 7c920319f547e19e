import type { Log } from "../../lib/log.ts";
import type { Jobs } from "../jobs.ts";
import type { Job } from "../port.ts";
import { cancelled } from "./cancel.ts";
import type { Endings } from "./endings.ts";
import type { Held, Leases } from "./leases.ts";
import { recordKey, STEPS, stepSubject } from "./names.ts";
import type { Publishing } from "./publishing.ts";
import type { Cluster } from "./streams.ts";

export interface SweeperDeps {
  cluster: Cluster;
  leases: Leases;
  jobs: Jobs;
  publishing: Publishing;
  endings: Endings;
  leaseMs: number;
  log: Log;
}

/** Compares the table with what the server has, and publishes anew what it has lost. */
export function createSweeper({ cluster: { jsm }, leases, jobs, publishing, endings, leaseMs, log }: SweeperDeps) {
  /** Since when a record has not changed, by our own clock. */
  const still = new Map<string, { revision: number; since: number }>();

  function silenceOf(id: string, { revision }: Held): number {
    const before = still.get(id);
    if (before?.revision === revision) return performance.now() - before.since;
    still.set(id, { revision, since: performance.now() });
    return 0;
  }

  async function isQueued(job: Job): Promise<boolean> {
    return (await jsm.streams.getMessage(STEPS, { last_by_subj: stepSubject(job) })) !== null;
  }

  async function look(job: Job): Promise<void> {
    const held = await leases.read(job);
    if (publishing.isUnderWay(job.id) || jobs.find(job.id)?.job.epoch !== job.epoch) return;
    if (!held) {
      log.info("the server has lost a job; it is published anew", { job: job.id, epoch: job.epoch + 1 });
      return publishing.again(job.id);
    }
    endings.take(recordKey(job), held);
    const { state, cancel } = held.lease;
    if (state !== "open" && state !== "running") return;
    const silentMs = silenceOf(job.id, held);
    if (cancel && silentMs > leaseMs) {
      await leases.write(job, cancelled(held.lease), held.revision);
      return;
    }
    if (state === "running" && silentMs <= 2 * leaseMs) return;
    // Nobody holds it and nobody will be handed it.
    if (await isQueued(job)) return;
    // One that was claimed and ended while we looked has another revision.
    const isUnchanged = (await leases.read(job))?.revision === held.revision;
    if (isUnchanged && !publishing.isUnderWay(job.id) && jobs.find(job.id)?.job.epoch === job.epoch)
      await publishing.again(job.id);
  }

  return {
    /** Rejects where the server is away. */
    async sweep(): Promise<void> {
      const open = jobs.open();
      for (const id of still.keys()) if (!open.some(({ job }) => job.id === id)) still.delete(id);
      for (const { job } of open) await look(job);
    },
  };
}
