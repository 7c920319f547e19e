import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import type { Blobs, Job, Outcome, Worker } from "../port.ts";
import { runJob } from "../run-job.ts";
import type { Claim } from "./attempt.ts";
import { createBlobs } from "./blobs.ts";
import type { Lease } from "./leases.ts";
import { createAsking } from "./questions.ts";
import type { Cluster } from "./streams.ts";
import { createTelling } from "./telling.ts";

/** A result larger than this travels beside its record. */
const MAX_RESULT = 128 * 1024;
const SEND_TRIES = 5;
const RETRY_MS = 250;

export interface PerformDeps {
  cluster: Cluster;
  worker: Worker;
  log: Log;
}

/** Does a job that was claimed, and writes its end down if it is still ours then. */
export async function perform({ cluster, worker, log }: PerformDeps, job: Job, claimed: Claim): Promise<void> {
  const { attempt, earlier, stop } = claimed;
  const { told, tell, record } = createTelling(cluster, job, claimed);
  const ask = createAsking(cluster, job, claimed);
  const blobs = createBlobs(cluster.js, job.pool);
  const whole: Worker = {
    async run({ specAt, ...rest }, life) {
      if (!specAt) return worker.run(rest, life);
      const spec = JSON.parse(new TextDecoder().decode(await blobs.get(specAt)));
      return worker.run({ ...rest, spec }, life);
    },
  };
  const outcome = await runJob({ worker: whole, job, life: { attempt, earlier, tell, record, ask, blobs }, stop, log });
  if (stop.signal.reason === "lost") {
    log.warn("a job was lost to another worker, or to the daemon", { job: job.id });
    return;
  }
  const { end, result } = await carried(outcome, attempt.lease, blobs);
  if ((await claimed.complete(end, { ...result, told: told() })) === "refused")
    log.warn("a result came too late and was refused", { job: job.id });
}

/** A result as it travels: in its record, or beside it where it is large. */
async function carried(
  outcome: Outcome,
  lease: string,
  blobs: Blobs,
): Promise<{ end: Outcome; result: Pick<Lease, "result" | "resultBlob"> }> {
  if (outcome.state !== "done") return { end: outcome, result: {} };
  const { state: _state, ...result } = outcome;
  const text = JSON.stringify(result);
  if (text.length <= MAX_RESULT) return { end: outcome, result: { result } };
  for (let tries = 1; ; tries += 1) {
    try {
      return { end: outcome, result: { resultBlob: await blobs.put(`result-${lease}`, new TextEncoder().encode(text)) } };
    } catch (error) {
      const message = `its result of ${text.length} bytes could not be sent (${messageOf(error)}).`;
      if (tries === SEND_TRIES) return { end: { state: "failed", error: { code: "result_lost", message } }, result: {} };
      await sleep(RETRY_MS * tries);
    }
  }
}
