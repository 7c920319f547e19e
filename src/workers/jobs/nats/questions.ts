import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../../../lib/errors.ts";
import type { Log } from "../../../lib/log.ts";
import type { Jobs } from "../jobs.ts";
import type { Blobs } from "../port.ts";
import type { Lease } from "./leases.ts";
import type { AnswerTo, Carried } from "./messages.ts";

type Answered = AnswerTo<"ask">;

/** The largest text inside a message. */
const MAX_TEXT = 200_000;
/** How long a worker waits for an answer before it gets "pending". */
const PENDING_MS = 4_000;
/** How long a worker may then take to ask again. */
const SILENT_MS = 5_000;
const MOST_KEPT = 200;

export interface AnsweringDeps {
  jobs: Jobs;
  blobs: (lease: string) => Blobs;
  log: Log;
}

/** A question that is being answered. */
interface PendingQuestion {
  answer: Promise<Answered>;
  asker: AbortController;
  /** Fires if the worker does not ask again. */
  silence: NodeJS.Timeout | undefined;
}

/** Answers what workers ask about their jobs: each question is processed once, however often it is repeated. */
export function createAnswering({ jobs, blobs, log }: AnsweringDeps) {
  const questions = new Map<string, Map<number, PendingQuestion>>();

  async function answerOnce({ job, attempt }: Lease, data: Carried, number: number, signal: AbortSignal): Promise<Answered> {
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

  function find(lease: Lease, number: number, data: Carried): PendingQuestion {
    const key = lease.attempt.lease;
    const ofLease = questions.get(key) ?? new Map<number, PendingQuestion>();
    const known = ofLease.get(number);
    clearTimeout(known?.silence);
    if (known) return known;
    const asker = new AbortController();
    const now: PendingQuestion = { asker, silence: undefined, answer: answerOnce(lease, data, number, asker.signal) };
    questions.set(key, ofLease.set(number, now));
    void now.answer.then(({ state }) => state === "pending" && ofLease.delete(number));
    // A worker asks one question at a time, or a few in parallel: it never repeats an old one.
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
      // The worker stopped asking: abort, and start again if it comes back.
      const giveUp = () => {
        question.asker.abort(new Error("its worker is not heard of any more"));
        const ofLease = questions.get(lease.attempt.lease);
        if (ofLease?.get(number) === question) ofLease.delete(number);
      };
      if (answered.state === "pending") question.silence = setTimeout(giveUp, SILENT_MS).unref();
      return answered;
    },
    /** Call when the lease is over. */
    forget: (lease: string) => void questions.delete(lease),
  };
}

export async function carry(value: unknown, blobs: Blobs, name: string): Promise<Carried> {
  const text = JSON.stringify(value ?? null);
  return text.length <= MAX_TEXT ? { value } : { blob: await blobs.put(name, new TextEncoder().encode(text)) };
}

export async function uncarry(carried: Carried, blobs: Blobs): Promise<unknown> {
  return "blob" in carried ? JSON.parse(new TextDecoder().decode(await blobs.get(carried.blob))) : carried.value;
}
