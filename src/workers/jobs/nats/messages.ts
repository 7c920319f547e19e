import { z } from "zod";
import { Failure } from "../../../protocol/messages.ts";
import { Attempt, BlobRef, EventBody, Job, JobValue, Token } from "../port.ts";

const Key = z.string().length(56);
const Nonce = z.string().min(1).max(64);
const Lease = z.string().regex(/^[0-9a-f-]{36}$/);

/** The head of every question from a worker. */
export const QuestionHead = z.object({
  protocol: z.number().int(),
  from: Key,
  to: Key,
  /** Random; the answer repeats it, so that no other or older answer fits. */
  nonce: Nonce,
  /** Issued by the daemon and valid until it restarts; together with the rising number it prevents replays. */
  session: z.string().max(64),
  number: z.number().int().positive(),
  kind: z.string().max(40),
  data: z.unknown(),
});
export const AnswerHead = z.object({
  protocol: z.number().int(),
  from: Key,
  to: Key,
  /** The nonce of the question. */
  re: Nonce,
  /** Set if the session of the question is unknown: ask again with this one. */
  session: z.string().max(64).optional(),
  data: z.unknown(),
});

/** Plain data, or a blob of the job if it is too large for a message. */
export const Carried = z.union([z.object({ value: z.unknown() }), z.object({ blob: BlobRef })]);
export type Carried = z.infer<typeof Carried>;

const Outcome = z.discriminatedUnion("state", [
  JobValue.extend({ state: z.literal("done") }),
  z.object({ state: z.enum(["failed", "cancelled"]), error: Failure }),
]);

/** What a worker asks, by kind. Every question but "next" is about one lease, which must be the asker's. */
export const QUESTIONS = {
  /** Asks for the next job and lists the leases that the worker has: other grants never arrived. */
  next: z.object({
    held: z.array(Lease).max(10_000),
    /** The worker is ending and wants no more jobs: its earlier question is over too. */
    leaving: z.boolean().optional(),
  }),
  /** Asks whether the job is still its own. The first beat starts the job. */
  beat: z.object({ lease: Lease }),
  ask: z.object({ lease: Lease, number: z.number().int().positive(), data: Carried }),
  record: z.object({ lease: Lease, job: Token, seq: z.number().int().positive(), body: EventBody }),
  delta: z.object({ lease: Lease, seq: z.number().int().min(0), data: z.unknown() }),
  end: z.object({ lease: Lease, outcome: z.union([z.object({ value: Outcome }), z.object({ blob: BlobRef })]) }),
  release: z.object({ lease: Lease }),
  put: z.object({ lease: Lease, name: z.string().min(1).max(200), at: z.number().int().min(0) }),
  get: z.object({ lease: Lease, name: z.string().min(1).max(200), at: z.number().int().min(0) }),
} satisfies Record<string, z.ZodType>;
export type Kind = keyof typeof QUESTIONS;
export { Outcome as ReportedOutcome };

/** What the daemon answers, by the kind of the question. */
export const ANSWERS = {
  next: z.object({ grant: z.object({ job: Job, attempt: Attempt, earlier: z.array(Attempt) }).nullable() }),
  beat: z.object({ state: z.enum(["held", "cancelled", "lost"]) }),
  ask: z.discriminatedUnion("state", [
    /** Still being worked on: ask again. */
    z.object({ state: z.literal("pending") }),
    z.object({ state: z.literal("answered"), data: Carried }),
    z.object({ state: z.literal("failed"), message: z.string() }),
    z.object({ state: z.literal("lost") }),
  ]),
  /** "again": the daemon cannot store it just now. */
  record: z.object({ state: z.enum(["told", "again", "lost"]) }),
  end: z.object({ state: z.enum(["accepted", "refused"]) }),
  release: z.object({ state: z.enum(["accepted", "refused"]) }),
  /** How many bytes of the blob are stored now. */
  put: z.object({ have: z.number().int(), lost: z.boolean() }),
  get: z.object({ size: z.number().int().nullable() }),
} satisfies Record<Exclude<Kind, "delta">, z.ZodType>;
export type AnswerTo<K extends keyof typeof ANSWERS> = z.infer<(typeof ANSWERS)[K]>;
