import { z } from "zod";
import { Failure } from "../../protocol/messages.ts";
import type { Usage } from "../../protocol/usage.ts";
import type { WaitingJob, Worker as WorkerInfo } from "../../protocol/workers.ts";

/** Raised with every change that an older worker could not follow; it stands in every subject. */
export const PROTOCOL = 2;

/** What is safe as one token of a subject. */
export const Token = z.string().regex(/^[A-Za-z0-9_-]{1,120}$/, "may hold letters, digits, - and _ only");

const ObjectId = z.string().regex(/^[0-9a-f]{40}(?:[0-9a-f]{24})?$/, "must be the id of a git object");

/** Bytes that travel beside a job. The hash is what makes them the ones that were meant. */
export const BlobRef = z.object({ name: z.string().max(200), sha256: z.string().length(64), size: z.number().int().min(0) });
export type BlobRef = z.infer<typeof BlobRef>;

/** How long a worker may be silent, how long its work may be, and how often it is begun. */
export const Limits = z.object({
  /** A worker that was not heard of for so long has lost the job. */
  leaseMs: z.number().int().positive(),
  silenceMs: z.number().int().positive(),
  capMs: z.number().int().positive(),
  maxAttempts: z.number().int().positive(),
});
export type Limits = z.infer<typeof Limits>;

export const Job = z.object({
  id: Token,
  /** Raised each time the daemon publishes the job anew. */
  epoch: z.number().int().positive(),
  /** Who may do it: "any", a label, or "host-<worker>". */
  pool: Token,
  kind: z.enum(["turn", "checks"]),
  /** Plain data of the kind; whoever does it checks it. */
  spec: z.record(z.string(), z.unknown()),
  /** Where that lies while it travels, if it is too much for a message. */
  specAt: BlobRef.optional(),
  limits: Limits,
  protocol: z.number().int(),
});
export type Job = z.infer<typeof Job>;

/** One time that a worker took a job on. */
export const Attempt = z.object({
  epoch: z.number().int().positive(),
  attempt: z.number().int().positive(),
  /** Random, a new one for each claim: who holds it, holds the job. */
  lease: z.string(),
  worker: z.string(),
  end: z.enum(["done", "failed", "cancelled", "lease_expired"]).optional(),
});
export type Attempt = z.infer<typeof Attempt>;

/** What is told of a job while it is done. Deltas may be lost; the others are on disk before they count as told. */
export const EventBody = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("delta"), data: z.unknown() }),
  /** An effect that is about to happen. */
  z.object({ kind: z.literal("intent"), call: z.string(), data: z.unknown() }),
  /** How it ended. */
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
  /** Counts the lasting events of an attempt from 1; a delta has the number of the one before it. */
  seq: z.number().int(),
  body: EventBody,
});
export type JobEvent = z.infer<typeof JobEvent>;

/** A number that a worker reports: as large as anything real, and never below zero. */
export const Count = z.number().int().min(0).max(1e12);
/** What a worker says that its model calls used. */
export const ReportedUsage: z.ZodType<Usage> = z.object({
  calls: Count,
  inputTokens: Count,
  outputTokens: Count,
  cacheReadTokens: Count,
});

/** What a job came to. */
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

/** How an attempt ends; `lost` never reaches the daemon. */
export type Outcome = ({ state: "done" } & JobValue) | { state: "failed" | "cancelled"; error: Failure };

export interface Blobs {
  put(name: string, bytes: Uint8Array): Promise<BlobRef>;
  /** Throws where the bytes are not the ones that the reference means. */
  get(ref: BlobRef): Promise<Uint8Array>;
}

/** What a worker asks about a job that it holds. */
export interface Question {
  job: Job;
  attempt: Attempt;
  /** Plain data of whoever asks and answers. */
  data: unknown;
  /** Aborted when whoever asked is not heard of any more. */
  signal: AbortSignal;
}
/** Answers a question, however long that takes; undefined where nobody here knows of the job yet. */
export type Answering = (question: Question) => Promise<unknown> | undefined;

/** Who does a job: this process, or a worker on another host. */
export interface Dispatcher {
  /** Durable when it returns; the same id and epoch again is nothing. */
  submit(job: Job): Promise<void>;
  /** The end of a job, once there is one; also of one that ended in an earlier life. */
  ended(id: string): Promise<JobEnd>;
  /** "reached": its worker was told; "gone": its worker is away, and nothing it still says counts. Either way it ends soon. */
  cancel(id: string): Promise<"reached" | "before start" | "gone">;
  /** Each lasting event is told once for each time its listener has not thrown; in the transaction that remembers it. */
  listen(to: (event: JobEvent) => void): () => void;
  /**
   * Answers what workers ask, each question once: one that is asked again, because its answer was lost, gets the same answer.
   * Only whoever holds the job is answered.
   */
  serve(answer: Answering): () => void;
  /** The job as it was submitted, for as long as it is known. */
  job(id: string): Job | undefined;
  /** Those that have not ended. */
  open(): Job[];
  /** How long a worker may be silent before another takes its job over. */
  leaseMs: number;
  /** At the start: takes up the jobs that are still wanted, and ends all others that an earlier life left open. */
  reconcile(wanted: readonly string[]): Promise<void>;
  attempts(id: string): Attempt[];
  waiting(): WaitingJob[];
  workers(): Promise<WorkerInfo[]>;
  /** Bytes that travel for one attempt; whoever holds its lease can reach them, and nobody else. */
  blobs(lease: string): Blobs;
  /** Takes away what travelled for an attempt. */
  forgetBlobs(lease: string): void;
  close(): Promise<void>;
}

/** What an attempt has to live with. */
export interface JobAttempt {
  attempt: Attempt;
  earlier: readonly Attempt[];
  /** Aborted when the job was cancelled or lost: end everything that was started for it. */
  signal: AbortSignal;
  tell(body: Delta): void;
  /** Resolves once it is on disk; rejects where the job is lost, and then the effect must not happen. */
  record(body: Lasting): Promise<void>;
  /** The daemon's answer, also if that takes a day, or a restart of the daemon; rejects where the job is lost. */
  ask(data: unknown): Promise<unknown>;
  blobs: Blobs;
}

/** Does jobs: the same here and on another host. */
export interface Worker {
  run(job: Job, life: JobAttempt): Promise<JobValue | { failure: Failure }>;
}

export const CANCELLED: Failure = { code: "cancelled", message: "it was cancelled before it was finished." };

/** Why a job that was begun too often is not begun again. */
export function gaveUp(attempts: number): Failure {
  return {
    code: "gave_up",
    message: `this was begun ${attempts} times and never finished: each time its worker was lost. Look at the workers (io worker list) before you ask for it again.`,
  };
}
