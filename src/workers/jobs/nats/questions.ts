import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../../../lib/errors.ts";
import type { Log } from "../../../lib/log.ts";
import type { Jobs } from "../jobs.ts";
import type { Blobs } from "../port.ts";
import type { Lease } from "./leases.ts";
import type { AnswerTo, Carried } from "./messages.ts";

type Answered = AnswerTo<"ask">;

/** The most that travels within a message. */
const MAX_TEXT = 200_000;
/** How long an answer is waited for before the asker is told that it is being seen to. */
const PENDING_MS = 4_000;
/** How long after that it may take until it is asked again. */
const SILENT_MS = 5_000;
const MOST_KEPT = 200;

export interface AnsweringDeps {
  jobs: Jobs;
  blobs: (lease: string) => Blobs;
  log: Log;
}

/** A question that is being seen to. */
interface Seen {
  answer: Promise<Answered>;
  asker: AbortController;
  /** Runs while the asker is expected to ask again. */
  silence: NodeJS.Timeout | undefined;
}

/** Answers what workers ask about their jobs: each question is seen to once, however often it is asked. */
export function createAnswering({ jobs, blobs, log }: AnsweringDeps) {
  const seen = new Map<string, Map<number, Seen>>();

  async function see({ job, attempt }: Lease, data: Carried, number: number, signal: AbortSignal): Promise<Answered> {
    const own = blobs(attempt.lease);
    try {
      const answered = jobs.answer({ job, attempt, signal, data: await uncarry(data, own) });
      if (!answered) return { state: "pending" };
      return { state: "answered", data: await carry(await answered, own, `answer-${number}`) };
    } catch (error) {
      log.error("a worker's question could not be answered", { job: job.id, error });
      return { state: "failed", message: messageOf(error) };
    }
  }

  function find(lease: Lease, number: number, data: Carried): Seen {
    const key = lease.attempt.lease;
    const ofLease = seen.get(key) ?? new Map<number, Seen>();
    const known = ofLease.get(number);
    clearTimeout(known?.silence);
    if (known) return known;
    const asker = new AbortController();
    const now: Seen = { asker, silence: undefined, answer: see(lease, data, number, asker.signal) };
    seen.set(key, ofLease.set(number, now));
    void now.answer.then(({ state }) => state === "pending" && ofLease.delete(number));
    // A worker asks one thing after the other, or a few side by side: what is long answered is not asked again.
    if (ofLease.size > MOST_KEPT) ofLease.delete(ofLease.keys().next().value!);
    return now;
  }

  return {
    async answer(lease: Lease, { number, data }: { number: number; data: Carried }): Promise<Answered> {
      const question = find(lease, number, data);
      const late = new AbortController();
      const pending = sleep(PENDING_MS, { state: "pending" } as const, { signal: late.signal });
      pending.catch(() => undefined);
      const answered = await Promise.race([question.answer, pending]);
      late.abort();
      // Nobody asks again: what was wanted is waited for no more, and begun anew should the asker come back.
      const giveUp = () => {
        question.asker.abort(new Error("its worker is not heard of any more"));
        const ofLease = seen.get(lease.attempt.lease);
        if (ofLease?.get(number) === question) ofLease.delete(number);
      };
      if (answered.state === "pending") question.silence = setTimeout(giveUp, SILENT_MS).unref();
      return answered;
    },
    /** The lease is over. */
    forget: (lease: string) => void seen.delete(lease),
  };
}

export async function carry(value: unknown, blobs: Blobs, name: string): Promise<Carried> {
  const text = JSON.stringify(value ?? null);
  return text.length <= MAX_TEXT ? { value } : { blob: await blobs.put(name, new TextEncoder().encode(text)) };
}

export async function uncarry(carried: Carried, blobs: Blobs): Promise<unknown> {
  return "blob" in carried ? JSON.parse(new TextDecoder().decode(await blobs.get(carried.blob))) : carried.value;
}
