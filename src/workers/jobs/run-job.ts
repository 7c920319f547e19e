import { setTimeout as sleep } from "node:timers/promises";
import { messageOf, UserError } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import { oneLine } from "../../lib/quoted.ts";
import { CANCELLED, type Job, type JobAttempt, JobValue, type Outcome, type Worker } from "./port.ts";

/** Why an attempt must end early. */
export type Stop = "cancelled" | "lost" | "too long";

/** How long work may take to end after it was told to. */
const GRACE_MS = 10_000;

export interface RunJobDeps {
  worker: Worker;
  job: Job;
  jobAttempt: Omit<JobAttempt, "signal">;
  /** Aborted with a `Stop` as its reason. */
  stop: AbortController;
  log: Log;
}

/** Runs one job until it ends or is told to stop. Never rejects. */
export async function runJob({ worker, job, jobAttempt, stop, log }: RunJobDeps): Promise<Outcome> {
  const { signal } = stop;
  const cap = setTimeout(() => stop.abort("too long" satisfies Stop), job.limits.capMs);
  const graceOver = new AbortController();
  const working = worker.run(job, { ...jobAttempt, signal }).then(outcomeOf, (error: unknown) => failureOf(error, log, job.id));
  const overdue = new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  }).then(() => sleep(GRACE_MS, undefined, { signal: graceOver.signal }).catch(() => undefined));
  try {
    const outcome = await Promise.race([working, overdue.then(() => undefined)]);
    if (outcome === undefined) log.error("a job was told to end and did not", { job: job.id });
    if (signal.reason === "cancelled") return { state: "cancelled", error: CANCELLED };
    if (signal.reason === "too long") return tooLong(job);
    return outcome ?? { state: "failed", error: { code: "stuck", message: "it was told to end and did not." } };
  } finally {
    clearTimeout(cap);
    graceOver.abort();
  }
}

function outcomeOf(result: Awaited<ReturnType<Worker["run"]>>): Outcome {
  if ("failure" in result) return { state: "failed", error: result.failure };
  return { state: "done", ...JobValue.parse(result) };
}

function failureOf(error: unknown, log: Log, job: string): Outcome {
  if (error instanceof UserError) return { state: "failed", error: { code: "failed", message: error.message } };
  log.error("a job could not be done", { job, error });
  const message = `something went wrong inside IO (${oneLine(messageOf(error), 500)}). The log of its worker has the details.`;
  return { state: "failed", error: { code: "internal", message } };
}

function tooLong({ limits }: Job): Outcome {
  const minutes = Math.round(limits.capMs / 60_000);
  return { state: "failed", error: { code: "too_long", message: `it took longer than ${minutes || "one"} min, and was ended.` } };
}
