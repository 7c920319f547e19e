import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../../../lib/errors.ts";
import type { Log } from "../../../lib/log.ts";
import type { Attempt, Blobs, Delta, Job, Lasting, Outcome } from "../port.ts";
import type { Stop } from "../run-job.ts";
import { checked, PIECE, refOf, refuseLarge } from "./blob-store.ts";
import type { Link } from "./link.ts";
import { ANSWERS, type AnswerTo } from "./messages.ts";
import { carry, uncarry } from "./questions.ts";

/** How often a worker renews its lease within the lease time. */
const BEATS_PER_LEASE = 4;
const RETRY_MS = 250;
/** The daemon answers "pending" after four seconds. */
const ASK_MS = 8_000;
/** How long the worker keeps trying to report the usage of a lost job. */
const USAGE_RETRY_MS = 15_000;
/** A larger result travels as a blob. */
const MAX_RESULT = 128 * 1024;

export interface HeldJobDeps {
  link: Link;
  job: Job;
  attempt: Attempt;
  log: Log;
}

/** A job that this worker holds as long as the daemon agrees. */
export interface HeldJob {
  attempt: Attempt;
  /** Aborted with a `Stop` when the job must end. */
  stop: AbortController;
  blobs: Blobs;
  tell(body: Delta): void;
  record(body: Lasting): Promise<void>;
  ask(data: unknown): Promise<unknown>;
  /** Reports the end, once everything recorded is on the daemon's disk. */
  complete(outcome: Outcome): Promise<"accepted" | "refused">;
  /** Asks now whether the job is still wanted. */
  look(): void;
  /** Gives the job back so that another worker can start it at once; nothing of it may still run here. */
  release(): Promise<void>;
  letGo(): void;
}

/** Takes on a job that the daemon granted; undefined if it belongs to another worker by now. */
export async function holdJob({ link, job, attempt, log }: HeldJobDeps): Promise<HeldJob | undefined> {
  const { leaseMs } = job.limits;
  const { lease } = attempt;
  const stop = new AbortController();
  const end = (why: Stop) => stop.abort(why);
  let lastOk = performance.now();
  let isOver = false;

  async function ask<K extends keyof typeof ANSWERS>(
    kind: K,
    data: object,
    options: Parameters<Link["ask"]>[2] = {},
  ): Promise<{ answer: AnswerTo<K>; bytes: Uint8Array } | undefined> {
    const answered = await link.ask(kind, { lease, ...data }, options);
    if (typeof answered === "string") return undefined;
    const { data: answer } = ANSWERS[kind].safeParse(answered.data);
    return answer === undefined ? undefined : { answer: answer as AnswerTo<K>, bytes: answered.bytes };
  }

  /** Undefined if the daemon did not answer. */
  async function beat(): Promise<AnswerTo<"beat">["state"] | undefined> {
    const asked = performance.now();
    const answered = await link.ask("beat", { lease }, { timeoutMs: Math.max(500, leaseMs / BEATS_PER_LEASE) });
    // A daemon that is away grants the job to nobody else, and after its restart it waits for a whole lease.
    if (answered === "away") lastOk = asked;
    if (typeof answered === "string") return undefined;
    const { data } = ANSWERS.beat.safeParse(answered.data);
    if (data && data.state !== "lost") lastOk = asked;
    return data?.state;
  }

  async function look(): Promise<void> {
    const state = await beat();
    if (isOver) return;
    if (state === "lost") end("lost");
    if (state === "cancelled") end("cancelled");
  }

  // The first beat starts the job: the grant may have waited here for long.
  let first = await beat();
  while (first === undefined && performance.now() - lastOk < leaseMs && !link.connection.isClosed()) {
    await sleep(RETRY_MS);
    first = await beat();
  }
  if (first === undefined || first === "lost") return undefined;
  if (first === "cancelled") end("cancelled");

  const beating = setInterval(() => void look(), leaseMs / BEATS_PER_LEASE);
  const watchdog = setInterval(
    () => {
      if (performance.now() - lastOk > leaseMs) end("lost");
    },
    Math.max(10, leaseMs / 40),
  );
  const letGo = () => {
    isOver = true;
    clearInterval(beating);
    clearInterval(watchdog);
  };
  const blobs = createSentBlobs(ask, stop.signal);
  const { record, settled } = createRecords({ ask, job, stop, log, isClosed: () => link.connection.isClosed() });
  let asked = 0;
  let told = 0;

  return {
    attempt,
    stop,
    blobs,
    letGo,
    look: () => void look(),
    tell({ data }) {
      link.tell("delta", { lease, seq: told, data });
    },
    record(body) {
      told += 1;
      return record(told, body);
    },
    async ask(data) {
      asked += 1;
      const number = asked;
      const carried = await carry(data, blobs, `ask-${number}`);
      for (;;) {
        stop.signal.throwIfAborted();
        const found = await unlessStopped(ask("ask", { number, data: carried }, { timeoutMs: ASK_MS }), stop.signal);
        const answer = found?.answer;
        if (answer?.state === "answered") return uncarry(answer.data, blobs);
        if (answer?.state === "failed") throw new Error(answer.message);
        if (answer?.state === "lost") end("lost");
        if (!answer) await sleep(RETRY_MS);
      }
    },
    async complete(outcome) {
      await settled();
      const report = await reported(outcome, blobs);
      for (;;) {
        if (link.connection.isClosed() || stop.signal.reason === "lost") return "refused";
        const wasCancelled = stop.signal.reason === "cancelled" && outcome.state === "done";
        const found = await ask("end", { outcome: wasCancelled ? CANCELLED_END : report });
        if (found) {
          letGo();
          return found.answer.state;
        }
        await sleep(RETRY_MS);
      }
    },
    async release() {
      letGo();
      await settled();
      await ask("release", {});
    },
  };
}

const CANCELLED_END = {
  value: { state: "cancelled" as const, error: { code: "cancelled", message: "it was cancelled before it was finished." } },
};

type Ask = <K extends keyof typeof ANSWERS>(
  kind: K,
  data: object,
  options?: Parameters<Link["ask"]>[2],
) => Promise<{ answer: AnswerTo<K>; bytes: Uint8Array } | undefined>;

interface RecordsDeps {
  ask: Ask;
  job: Job;
  stop: AbortController;
  log: Log;
  isClosed: () => boolean;
}

/** Sends lasting events one after the other, each until it is on the daemon's disk. */
function createRecords({ ask, job, stop, log, isClosed }: RecordsDeps) {
  let last: Promise<unknown> = Promise.resolve();

  async function tell(seq: number, body: Lasting): Promise<void> {
    const isUsage = body.kind === "usage";
    let until = Number.POSITIVE_INFINITY;
    for (;;) {
      if (stop.signal.aborted && !isUsage) throw stop.signal.reason;
      if (stop.signal.reason === "lost") until = Math.min(until, performance.now() + USAGE_RETRY_MS);
      const state = (await ask("record", { job: job.id, seq, body }))?.answer.state;
      if (state === "told") return;
      if (state === "lost" || isClosed() || performance.now() > until) {
        if (isUsage) log.error("what a model call used could not be reported", { job: job.id, usage: body.data });
        if (state === "lost") stop.abort("lost" satisfies Stop);
        throw new Error("the job is another's by now");
      }
      await sleep(RETRY_MS);
    }
  }

  return {
    record(seq: number, body: Lasting): Promise<void> {
      const now = last.then(() => tell(seq, body));
      last = now.catch(() => undefined);
      return now;
    },
    settled: () => last,
  };
}

/** The blobs of one attempt, uploaded to the daemon and downloaded from it in pieces. */
function createSentBlobs(ask: Ask, signal: AbortSignal): Blobs {
  async function untilAnswered<K extends "put" | "get">(kind: K, data: object, bytes?: Uint8Array) {
    for (;;) {
      if (signal.reason === "lost") throw signal.reason;
      const found = await ask(kind, data, { timeoutMs: ASK_MS, ...(bytes && { bytes }) });
      if (found) return found;
      await sleep(RETRY_MS);
    }
  }
  return {
    async put(name, bytes) {
      refuseLarge(bytes);
      let at = 0;
      do {
        const piece = bytes.subarray(at, at + PIECE);
        const { have, lost } = (await untilAnswered("put", { name, at }, piece)).answer;
        if (lost) throw new Error("the job is another's by now");
        at = have;
      } while (at < bytes.length);
      return refOf(name, bytes);
    },
    async get(ref) {
      refuseLarge({ length: ref.size } as Uint8Array);
      const pieces: Uint8Array[] = [];
      for (let at = 0; at < ref.size; ) {
        const { answer, bytes } = await untilAnswered("get", { name: ref.name, at });
        if (answer.size !== ref.size || bytes.length === 0) break;
        pieces.push(bytes);
        at += bytes.length;
      }
      return checked(ref, Buffer.concat(pieces));
    },
  };
}

/** The outcome as it travels: in the message, or as a blob if it is large. */
async function reported(outcome: Outcome, blobs: Blobs) {
  const text = JSON.stringify(outcome);
  if (text.length <= MAX_RESULT) return { value: outcome };
  try {
    return { blob: await blobs.put("result", new TextEncoder().encode(text)) };
  } catch (error) {
    const message = `its result of ${text.length} bytes could not be sent (${messageOf(error)}).`;
    return { value: { state: "failed" as const, error: { code: "result_lost", message } } };
  }
}

/** Waits for the work, or rejects as soon as the job must end. */
function unlessStopped<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const stopped = () => reject(signal.reason);
    signal.addEventListener("abort", stopped, { once: true });
    void work.then(resolve, reject).finally(() => signal.removeEventListener("abort", stopped));
  });
}
