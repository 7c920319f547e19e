import { z } from "zod";
import { Failure } from "../../protocol/messages.ts";
import type { Usage } from "../../protocol/usage.ts";
import type { WaitingJob, Worker as WorkerInfo } from "../../protocol/workers.ts";

/** Raised with every change that an older worker could not follow; every subject contains it. */
export const PROTOCOL = 2;

/** A string that is safe as one token of a NATS subject. */
export const Token = z.string().regex(/^[A-Za-z0-9_-]{1,120}$/, "may hold letters, digits, - and _ only");

const ObjectId = z.string().regex(/^[0-9a-f]{40}(?:[0-9a-f]{24})?$/, "must be the id of a git object");

/** Bytes that travel beside a job, verified by their hash. */
export const BlobRef = z.object({ name: z.string().max(200), sha256: z.string().length(64), size: z.number().int().min(0) });
export type BlobRef = z.infer<typeof BlobRef>;

/** Time limits of a job, and how often it may be started. */
export const Limits = z.object({
  /** A worker that is silent for this long loses the job. */
  leaseMs: z.number().int().positive(),
  silenceMs: z.number().int().positive(),
  capMs: z.number().int().positive(),
  maxAttempts: z.number().int().positive(),
});
export type Limits = z.infer<typeof Limits>;

export const Job = z.object({
  id: Token,
  /** Raised each time the daemon publishes the job again. */
  epoch: z.number().int().positive(),
  /** Which workers may run it: "any", a label, or "host-<worker>". */
  pool: Token,
  kind: z.enum(["turn", "checks"]),
  /** Plain data that depends on the kind; the worker validates it. */
  spec: z.record(z.string(), z.unknown()),
  /** Set when the spec is too large for a message and travels as a blob. */
  specAt: BlobRef.optional(),
  limits: Limits,
  protocol: z.number().int(),
});
export type Job = z.infer<typeof Job>;

/** One try at a job by one worker. */
export const Attempt = z.object({
  epoch: z.number().int().positive(),
  attempt: z.number().int().positive(),
  /** Random and new for each claim: holding it means holding the job. */
  lease: z.string(),
  worker: z.string(),
  end: z.enum(["done", "failed", "cancelled", "lease_expired"]).optional(),
});
export type Attempt = z.infer<typeof Attempt>;

/** Events of a running job. Deltas may be lost; the others are on disk before they count as reported. */
export const EventBody = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("delta"), data: z.unknown() }),
  /** An effect that is about to happen. */
  z.object({ kind: z.literal("intent"), call: z.string(), data: z.unknown() }),
  /** How that effect ended. */
  z.object({ kind: z.literal("outcome"), call: z.string(), data: z.unknown() }),
  z.object({ kind: z.literal("usage"), data: z.unknown() }),
]);
export type EventBody = z.infer<typeof EventBody>;
export type Delta = Extract<EventBody, { kind: "delta" }>;
export type Lasting = Exclude<EventBody, { kind: "delta" }>;

export const JobEvent = z.object({
  job: Token,
  epoch: z.number().int(),
  attempt: z.number().int(),
  lease: z.string(),
  worker: z.string(),
  /** Counts the lasting events of an attempt from 1; a delta carries the number of the lasting event before it. */
  seq: z.number().int(),
  body: EventBody,
});
export type JobEvent = z.infer<typeof JobEvent>;

/** A number that a worker reports: never negative, and bounded by what is plausible. */
export const Count = z.number().int().min(0).max(1e12);
/** What a worker reports that its model calls used. */
export const ReportedUsage: z.ZodType<Usage> = z.object({
  calls: Count,
  inputTokens: Count,
  outputTokens: Count,
  cacheReadTokens: Count,
});

/** The result of a finished job. */
export const JobValue = z.object({
  value: z.unknown(),
  tree: ObjectId.nullable(),
  commit: ObjectId.nullable(),
  bundle: BlobRef.optional(),
  usage: ReportedUsage,
});
export type JobValue = z.infer<typeof JobValue>;

export const JobEnd = z.discriminatedUnion("state", [
  JobValue.extend({ state: z.literal("done"), attempts: z.array(Attempt) }),
  z.object({ state: z.literal("failed"), error: Failure, attempts: z.array(Attempt) }),
  z.object({ state: z.literal("cancelled"), error: Failure, attempts: z.array(Attempt) }),
]);
export type JobEnd = z.infer<typeof JobEnd>;

/** How an attempt ends; a lost attempt is never reported to the daemon. */
export type Outcome = ({ state: "done" } & JobValue) | { state: "failed" | "cancelled"; error: Failure };

export interface Blobs {
  put(name: string, bytes: Uint8Array): Promise<BlobRef>;
  /** Throws if the bytes do not match the reference. */
  get(ref: BlobRef): Promise<Uint8Array>;
}

/** What a worker asks about a job that it holds. */
export interface Question {
  job: Job;
  attempt: Attempt;
  /** Plain data; the asker and the answerer agree on its shape. */
  data: unknown;
  /** Aborted when the asker has gone silent. */
  signal: AbortSignal;
}
/** Answers a question, however long that takes; undefined if no one here knows the job yet. */
export type Answering = (question: Question) => Promise<unknown> | undefined;

/** Has jobs done by workers. */
export interface Dispatcher {
  /** Durable when it returns; submitting the same id and epoch again has no effect. */
  submit(job: Job): Promise<void>;
  /** Resolves when the job ends; also for a job that ended before the daemon restarted. */
  ended(id: string): Promise<JobEnd>;
  /**
   * "reached": the worker was told. "gone": the worker is away, and whatever it still reports is ignored. Either way the job ends
   * soon.
   */
  cancel(id: string): Promise<"reached" | "before start" | "gone">;
  /** Delivers each lasting event once, in the transaction that records it; a listener that throws gets the event again. */
  listen(to: (event: JobEvent) => void): () => void;
  /**
   * Answers what workers ask, each question once: a question repeated because its answer was lost gets the same answer. Only the
   * worker that holds the job is answered.
   */
  serve(answer: Answering): () => void;
  /** The job as it was submitted, as long as it is remembered. */
  job(id: string): Job | undefined;
  /** Jobs that have not ended. */
  open(): Job[];
  /** How long a worker may be silent before another takes over its job. */
  leaseMs: number;
  /** On startup: continues the jobs that are still wanted and cancels all others that were left open. */
  reconcile(wanted: readonly string[]): Promise<void>;
  attempts(id: string): Attempt[];
  waiting(): WaitingJob[];
  workers(): Promise<WorkerInfo[]>;
  /** Blobs of one attempt; only the holder of its lease can reach them. */
  blobs(lease: string): Blobs;
  /** Deletes the blobs of an attempt. */
  forgetBlobs(lease: string): void;
  close(): Promise<void>;
}

/** What a worker can use while it runs an attempt. */
export interface JobAttempt {
  attempt: Attempt;
  earlier: readonly Attempt[];
  /** Aborted when the job is cancelled or lost: end everything that was started for it. */
  signal: AbortSignal;
  tell(body: Delta): void;
  /** Resolves once the event is on the daemon's disk. Rejects if the job is lost; the effect must then not happen. */
  record(body: Lasting): Promise<void>;
  /** The daemon's answer, even if it takes a day or a restart of the daemon. Rejects if the job is lost. */
  ask(data: unknown): Promise<unknown>;
  blobs: Blobs;
}

/** Runs jobs. */
export interface Worker {
  run(job: Job, jobAttempt: JobAttempt): Promise<JobValue | { failure: Failure }>;
}

export const CANCELLED: Failure = { code: "cancelled", message: "it was cancelled before it was finished." };

/** Why a job that was started too often is not started again. */
export function gaveUp(attempts: number): Failure {
  return {
    code: "gave_up",
    message: `this was begun ${attempts} times and never finished: each time its worker was lost. Look at the workers (io worker list) before you ask for it again.`,
  };
}
