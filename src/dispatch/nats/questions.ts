import { setTimeout as sleep } from "node:timers/promises";
import type { Msg } from "@nats-io/transport-node";
import { z } from "zod";
import { messageOf } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import type { Jobs } from "../jobs.ts";
import { Attempt, BlobRef, type Blobs, type Job } from "../port.ts";
import type { Claim } from "./attempt.ts";
import { createBlobs } from "./blobs.ts";
import { jsonOf } from "./connection.ts";
import type { Leases } from "./leases.ts";
import { askSubject, everyQuestion } from "./names.ts";
import type { Cluster } from "./streams.ts";

/** Plain data, or where it lies if it is too much for a message. */
const Carried = z.union([z.object({ value: z.unknown() }), z.object({ blob: BlobRef })]);
type Carried = z.infer<typeof Carried>;
const Asked = z.object({ attempt: Attempt, number: z.number().int(), data: Carried });
const Answered = z.discriminatedUnion("state", [
  /** It is being seen to: ask again. */
  z.object({ state: z.literal("pending") }),
  z.object({ state: z.literal("answered"), data: Carried }),
  z.object({ state: z.literal("failed"), message: z.string() }),
  /** The job is another's by now. */
  z.object({ state: z.literal("lost") }),
]);
type Answered = z.infer<typeof Answered>;

/** The most that travels within a message; servers take a million bytes unless told otherwise. */
const MAX_TEXT = 200_000;
/** How long an answer is waited for before the asker is told that it is being seen to. */
const PENDING_MS = 4_000;
const TIMEOUT_MS = 8_000;
/** How long after that it may take until it is asked again. */
const SILENT_MS = 5_000;
const RETRY_MS = 100;
const MOST_KEPT = 200;

/** The worker's side: asks until there is an answer, or the job is lost. */
export function createAsking({ nc, js }: Pick<Cluster, "nc" | "js">, job: Job, { attempt, stop }: Claim) {
  const blobs = createBlobs(js, job.pool);
  let number = 0;

  async function once(asked: string): Promise<Answered | undefined> {
    try {
      const reply = await nc.request(askSubject(job), asked, { timeout: TIMEOUT_MS });
      return Answered.parse(reply.json());
    } catch {
      // The daemon or the server is away; the watchdog says when the job is lost over it.
      return undefined;
    }
  }

  return async function ask(data: unknown): Promise<unknown> {
    number += 1;
    const asked = JSON.stringify({ attempt, number, data: await carry(data, blobs, `ask-${attempt.lease}-${number}`) });
    for (;;) {
      stop.signal.throwIfAborted();
      const answer = await unlessStopped(once(asked), stop.signal);
      if (answer?.state === "answered") return uncarry(answer.data, blobs);
      if (answer?.state === "failed") throw new Error(answer.message);
      if (answer?.state === "lost") stop.abort("lost");
      if (!answer) await sleep(RETRY_MS);
    }
  };
}

export interface AnsweringDeps {
  cluster: Cluster;
  leases: Leases;
  jobs: Jobs;
  log: Log;
}

/** A question that is being seen to. */
interface Seen {
  answer: Promise<Answered>;
  asker: AbortController;
  /** Runs while the asker is expected to ask again. */
  silence: NodeJS.Timeout | undefined;
}

/** The daemon's side: each question is seen to once, however often it is asked. */
export function answerQuestions({ cluster: { nc, js }, leases, jobs, log }: AnsweringDeps): { stop(): void } {
  const seen = new Map<string, Map<string, Seen>>();

  async function find({ pool, id }: { pool: string; id: string }, asked: z.infer<typeof Asked>): Promise<Seen | "lost"> {
    const open = jobs.find(id);
    if (!open || open.job.pool !== pool) return "lost";
    const { job } = open;
    const { lease, epoch } = asked.attempt;
    const held = epoch === job.epoch ? await leases.read(job) : undefined;
    if (held?.lease.state !== "running" || held.lease.lease !== lease) return "lost";
    const ofJob = seen.get(id) ?? new Map<string, Seen>();
    const key = `${lease}.${asked.number}`;
    const known = ofJob.get(key);
    clearTimeout(known?.silence);
    if (known) return known;
    const asker = new AbortController();
    const now: Seen = { asker, silence: undefined, answer: see(job, asked, key, asker.signal) };
    seen.set(id, ofJob.set(key, now));
    void now.answer.then(({ state }) => state === "pending" && ofJob.delete(key));
    // A worker asks one thing after the other, or a few side by side: what is long answered is not asked again.
    if (ofJob.size > MOST_KEPT) ofJob.delete(ofJob.keys().next().value!);
    for (const each of seen.keys()) if (!jobs.find(each)) seen.delete(each);
    return now;
  }

  async function see(job: Job, { attempt, data }: z.infer<typeof Asked>, key: string, signal: AbortSignal): Promise<Answered> {
    const blobs = createBlobs(js, job.pool);
    try {
      const answered = jobs.answer({ job, attempt, signal, data: await uncarry(data, blobs) });
      if (!answered) return { state: "pending" };
      return { state: "answered", data: await carry(await answered, blobs, `answer-${key}`) };
    } catch (error) {
      log.error("a worker's question could not be answered", { job: job.id, error });
      return { state: "failed", message: messageOf(error) };
    }
  }

  /** Nobody asks again: what was wanted is waited for no more, and begun anew should the asker come back. */
  function giveUp(id: string, question: Seen): void {
    question.asker.abort(new Error("its worker is not heard of any more"));
    for (const [key, each] of seen.get(id) ?? []) if (each === question) seen.get(id)?.delete(key);
  }

  async function hear(message: Msg): Promise<void> {
    const [pool = "", id = ""] = message.subject.split(".").slice(-2);
    const respond = (answered: Answered) => void message.respond(JSON.stringify(answered));
    const asked = Asked.safeParse(jsonOf(message)).data;
    const late = new AbortController();
    try {
      const question = asked ? await find({ pool, id }, asked) : "lost";
      if (question === "lost") return respond({ state: "lost" });
      const pending = sleep(PENDING_MS, { state: "pending" } as const, { signal: late.signal });
      pending.catch(() => undefined);
      const answered = await Promise.race([question.answer, pending]);
      if (answered.state === "pending") question.silence = setTimeout(() => giveUp(id, question), SILENT_MS).unref();
      respond(answered);
    } catch (error) {
      // Not answered at all: it is asked again.
      log.debug("a worker's question is left for its next try", { job: id, error: messageOf(error) });
    } finally {
      late.abort();
    }
  }

  const subscription = nc.subscribe(everyQuestion(), {
    callback: (error, message) => {
      if (!error) void hear(message);
    },
  });
  return { stop: () => subscription.unsubscribe() };
}

async function carry(value: unknown, blobs: Blobs, name: string): Promise<Carried> {
  const text = JSON.stringify(value ?? null);
  return text.length <= MAX_TEXT ? { value } : { blob: await blobs.put(name, new TextEncoder().encode(text)) };
}

async function uncarry(carried: Carried, blobs: Blobs): Promise<unknown> {
  return "blob" in carried ? JSON.parse(new TextDecoder().decode(await blobs.get(carried.blob))) : carried.value;
}

/** What is under way is left alone once the job is to end. */
function unlessStopped<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stopped = () => reject(signal.reason);
    signal.addEventListener("abort", stopped, { once: true });
    void work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stopped));
  });
}
