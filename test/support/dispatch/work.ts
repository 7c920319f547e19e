import { createHash } from "node:crypto";
import { appendFileSync, existsSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { UserError } from "../../../src/lib/errors.ts";
import { exec } from "../../../src/process/exec.ts";
import { noUsage } from "../../../src/protocol/usage.ts";
import { type Job, PROTOCOL, type Worker } from "../../../src/workers/jobs/port.ts";

/** What a test job does, in this order. */
const Work = z.object({
  /** The file in which it notes its steps, so that tests can see them. */
  notes: z.string(),
  deltas: z.array(z.string()).default([]),
  effects: z.array(z.string()).default([]),
  /** What it asks the daemon, one question at a time. The answers are in its result. */
  asks: z.array(z.string()).default([]),
  shell: z.string().optional(),
  ms: z.number().default(0),
  /** Runs until a file with this name exists. */
  untilFile: z.string().optional(),
  /** Keeps running for this long, even if it was told to stop. */
  deafMs: z.number().default(0),
  fail: z.string().optional(),
  /** The length of the text in its result. */
  bytes: z.number().default(0),
  /** The size of the blob that it sends beside the result. */
  blobBytes: z.number().default(0),
});
export type Work = z.input<typeof Work>;

export const LEASE_MS = 1_200;

export function jobOf(
  id: string,
  work: Work,
  more: Partial<Omit<Job, "limits">> & { limits?: Partial<Job["limits"]> } = {},
): Job {
  const limits = { leaseMs: LEASE_MS, silenceMs: 60_000, capMs: 60_000, maxAttempts: 5, ...more.limits };
  return { id, epoch: 1, pool: "any", kind: "checks", spec: work, protocol: PROTOCOL, ...more, limits };
}

/** Runs the test jobs; `note` leaves a line that tests can wait for. */
export const testWorker: Worker = {
  async run({ id, spec }, { attempt, earlier, signal, tell, record, ask, blobs }) {
    const work = Work.parse(spec);
    const note = (what: string) => appendFileSync(work.notes, `${what} ${id} ${attempt.attempt} ${attempt.worker}\n`);
    note("begun");
    for (const text of work.deltas) tell({ kind: "delta", data: text });
    for (const call of work.effects) {
      await record({ kind: "intent", call, data: null });
      note(`effect-${call}`);
      await record({ kind: "outcome", call, data: "done" });
    }
    const answers: unknown[] = [];
    for (const each of work.asks) answers.push(await ask(each).catch((error: Error) => error.message));
    if (work.shell) await exec("/bin/sh", ["-c", work.shell], { signal });
    await sleep(work.ms, undefined, { signal }).catch(() => note("stopped"));
    while (work.untilFile && !existsSync(work.untilFile) && !signal.aborted) await sleep(10);
    if (work.deafMs > 0) await sleep(work.deafMs);
    if (work.fail) throw new UserError(work.fail);
    if (signal.aborted) return { failure: { code: "stopped", message: "it was stopped." } };
    const bytes = new Uint8Array(work.blobBytes).fill(7);
    const bundle = work.blobBytes > 0 ? await blobs.put(`blob-${attempt.lease}`, bytes) : undefined;
    note("ended");
    const value = { text: "x".repeat(work.bytes), earlier: earlier.length, hash: hashOf(bytes), answers };
    return { value, tree: null, commit: null, usage: noUsage(), ...(bundle && { bundle }) };
  },
};

export const hashOf = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");
