import { createHash } from "node:crypto";
import { z } from "zod";
import { BlobRef } from "../dispatch/port.ts";
import { SandboxHeight } from "../lib/safety-config.ts";
import type { TurnErrorCode, TurnResult } from "../protocol/turns.ts";
import { Usage } from "../protocol/usage.ts";

const Commit = z.string().regex(/^[0-9a-f]{40}(?:[0-9a-f]{24})?$/);

/** The folder that a job is done in, as the daemon and the model call it; its files come as commits. */
export const PlaceSpec = z.object({
  /** Which repository it is, for what a worker keeps of it. */
  project: z.string().regex(/^[0-9a-f]{16}$/),
  commit: Commit,
  /** The project's folder below the top of the repository, or "". */
  prefix: z.string(),
  cwd: z.string(),
  /** The user's own checkout, which no worker has. */
  projectPath: z.string(),
  access: z.enum(["write", "read"]),
  height: SandboxHeight.nullable(),
  /** What the checkout has installed and git ignores. */
  installed: z.array(z.string()),
});
export type PlaceSpec = z.infer<typeof PlaceSpec>;

const SentTool = z.object({
  name: z.string(),
  description: z.string(),
  parameters: z.record(z.string(), z.unknown()),
});

/** A turn as it travels. What it needs besides is asked for while it is done. */
export const TurnSpec = z.object({
  owner: z.string(),
  place: PlaceSpec,
  prompt: z.string(),
  model: z.string().nullable(),
  tools: z.array(SentTool),
  essential: z.array(z.string()).nullable(),
  session: z.string().regex(/^[\w.-]{1,200}$/),
  /** Whether the session is kept for later turns. */
  lasting: z.boolean(),
  /** Whether leave is asked for before each model call. */
  limited: z.boolean(),
  silenceMs: z.number(),
  capMs: z.number(),
  /** For the daemon alone. */
  spender: z.record(z.string(), z.unknown()).nullable(),
});
export type TurnSpec = z.infer<typeof TurnSpec>;

/** Commands that are run on a tree, one after the other. */
export const ChecksSpec = z.object({
  owner: z.string(),
  place: PlaceSpec,
  checks: z.array(z.object({ command: z.string(), cwd: z.string() })),
  deadlineMs: z.number(),
});
export type ChecksSpec = z.infer<typeof ChecksSpec>;

/** How one of them ended. */
export const CheckEnd = z.object({
  exitCode: z.number().nullable(),
  ending: z.enum(["exited", "deadline", "aborted", "not-started"]),
  output: z.string(),
  sha256: z.string(),
  bytes: z.number(),
  durationMs: z.number(),
});
export type CheckEnd = z.infer<typeof CheckEnd>;

/** What a worker asks while it does a turn. */
export const Wanted = z.discriminatedUnion("kind", [
  /** The commit of the place, short of what stands on these. */
  z.object({ kind: z.literal("code"), known: z.array(Commit) }),
  z.object({ kind: z.literal("system"), window: z.number() }),
  /** What was said before, for a session that is begun anew. */
  z.object({ kind: z.literal("handover"), window: z.number() }),
  /** Leave for the next model call. */
  z.object({ kind: z.literal("permit") }),
  /** A call that the model made. */
  z.object({ kind: z.literal("call"), call: z.string(), tool: z.string(), args: z.unknown(), said: z.string() }),
  /** What came of one that was to be done on the worker. */
  z.object({ kind: z.literal("outcome"), call: z.string(), ok: z.boolean(), refused: z.boolean(), text: z.string() }),
]);
export type Wanted = z.infer<typeof Wanted>;

const Answer = z.object({ ok: z.boolean(), text: z.string() });
/** The answers, by what was asked. */
export const ANSWERS = {
  code: z.object({ bundle: BlobRef.nullable() }),
  system: z.string(),
  handover: z.string(),
  permit: z.object({ refusal: z.string().nullable() }),
  /** "do": the call has passed the gate, and is the worker's to do with these arguments. */
  call: z.union([z.object({ answer: Answer }), z.object({ do: z.record(z.string(), z.unknown()) })]),
  outcome: Answer,
} satisfies Record<Wanted["kind"], z.ZodType>;

const Code = z.custom<TurnErrorCode>((code) => typeof code === "string");
export const TurnValue: z.ZodType<TurnResult> = z.object({
  outcome: z.enum(["done", "failed", "aborted", "timed out"]),
  text: z.string(),
  error: z.object({ code: Code, message: z.string() }).optional(),
  remedy: z.string().optional(),
  usage: Usage,
  tools: z.array(z.string()),
  served: z.array(z.string()),
}) as z.ZodType<TurnResult>;

export const ModelCallTold = z.object({
  model: z.string(),
  inputTokens: z.number(),
  outputTokens: z.number(),
  cacheReadTokens: z.number(),
  durationMs: z.number(),
  rehearsal: z.boolean().optional(),
});

/** What an attempt is sent, and what it leaves, under these names. */
export const codeName = (lease: string): string => `code-${lease}`;
export const leftName = (lease: string): string => `left-${lease}`;

/** The id of the job for a turn or for checks: the same for every life of the daemon, safe in a subject, and still to be read. */
export function jobIdOf(owner: string, again: number): string {
  const plain = owner.replace(/[^\w-]/g, "_");
  const hash = createHash("sha256").update(owner).digest("hex").slice(0, 12);
  return `${plain === owner && plain.length <= 80 ? plain : `${plain.slice(0, 80)}-${hash}`}-${again}`;
}
