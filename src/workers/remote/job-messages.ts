import { createHash } from "node:crypto";
import { z } from "zod";
import { SandboxHeight } from "../../home/safety-config.ts";
import { UserError } from "../../lib/errors.ts";
import { explainIssues } from "../../lib/validation.ts";
import { MAX_COMPLAINTS, MAX_TAIL } from "../../project/reports/read.ts";
import { MAX_NAME, MAX_NAMES, RUNNER_NAMES } from "../../project/reports/report.ts";
import { CallEnd } from "../../protocol/calls.ts";
import { ContextUse, type TurnErrorCode, type TurnEvent, type TurnResult } from "../../protocol/turns.ts";
import type { ModelCall } from "../../protocol/usage.ts";
import { BlobRef, Count, ReportedUsage } from "../jobs/port.ts";

const Duration = z.number().min(0).max(1e11);
const CallId = z.string().min(1).max(500);
/** A path below the top of a worktree: no "..", no absolute path, no `.git`. "" is the top itself. */
export const InnerPath = z
  .string()
  .max(4_096)
  .refine(
    (path) =>
      /^\.?$/.test(path) ||
      path.split("/").every((part) => part !== "" && !/^(?:\.{1,2}|\.git)$/i.test(part) && !/[\0\\]/.test(part)),
    "must be a path below the worktree",
  );
/** A folder on the daemon's host. Only its name counts: no worker opens it. */
const Folder = z.string().max(4_096).startsWith("/");
const Commit = z.string().regex(/^[0-9a-f]{40}(?:[0-9a-f]{24})?$/);

/** The folder of a job, named as the daemon and the model know it; its files travel as commits. */
export const PlaceSpec = z.object({
  /** Identifies the repository in the worker's cache. */
  project: z.string().regex(/^[0-9a-f]{16}$/),
  commit: Commit,
  /** The project's folder below the top of the repository, or "". */
  prefix: InnerPath,
  cwd: Folder,
  /** The user's own checkout, which no worker has. */
  projectPath: Folder,
  access: z.enum(["write", "read"]),
  height: SandboxHeight.nullable(),
  /** Installed folders of the checkout that git ignores. */
  installed: z.array(InnerPath).max(10_000),
});
export type PlaceSpec = z.infer<typeof PlaceSpec>;

const SentTool = z.object({
  name: z.string(),
  description: z.string(),
  parameters: z.record(z.string(), z.unknown()),
});

/** A turn as it travels. The worker asks for the rest while it runs. */
export const TurnSpec = z.object({
  owner: z.string(),
  place: PlaceSpec,
  prompt: z.string(),
  model: z.string().nullable(),
  tools: z.array(SentTool),
  essential: z.array(z.string()).nullable(),
  session: z.string().regex(/^\w[\w.-]{0,199}$/),
  /** Whether the session is kept for later turns. */
  lasting: z.boolean(),
  /** Whether the worker must ask for permission before each model call. */
  limited: z.boolean(),
  silenceMs: z.number(),
  capMs: z.number(),
  /** Only the daemon reads it. */
  spender: z.record(z.string(), z.unknown()).nullable(),
});
export type TurnSpec = z.infer<typeof TurnSpec>;

const Argv = z.tuple([z.string()], z.string());

/** Commands to run on a tree, one after the other. */
export const ChecksSpec = z.object({
  owner: z.string(),
  place: PlaceSpec,
  /** `instead` is a program with arguments that replaces the command; older workers run the command anyway. */
  checks: z.array(z.object({ command: z.string(), cwd: InnerPath, instead: Argv.optional() })),
  deadlineMs: z.number(),
});
export type ChecksSpec = z.infer<typeof ChecksSpec>;

const Hashes = z.array(z.string().regex(/^[0-9a-f]{16}$/)).max(MAX_COMPLAINTS);
/** What a worker found in the whole output of a check, before it cut that output. */
export const SentReading = z.object({
  tail: z.string().max(MAX_TAIL),
  reports: z
    .array(
      z.object({
        runner: z.string().refine((name) => RUNNER_NAMES.includes(name), "must be a known runner"),
        failed: z.array(z.string().max(MAX_NAME)).max(MAX_NAMES),
        passed: Count.optional(),
        complete: z.boolean(),
      }),
    )
    .max(RUNNER_NAMES.length),
  complaints: Hashes.optional(),
  others: Hashes.optional(),
  /** Older workers do not say. */
  stopped: z.boolean().optional(),
});

/** How one check ended. */
export const CheckEnd = z.object({
  exitCode: z.number().nullable(),
  ending: z.enum(["exited", "deadline", "aborted", "not-started"]),
  output: z.string().max(200_000),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  bytes: Count,
  durationMs: Duration,
  /** Older workers send none. */
  reading: SentReading.optional(),
});
export type CheckEnd = z.infer<typeof CheckEnd>;

/** What a worker asks while it runs a job. */
export const WorkerRequest = z.discriminatedUnion("kind", [
  /** Asks for the job's commit; the worker already has these. */
  z.object({ kind: z.literal("code"), known: z.array(Commit).max(100) }),
  z.object({ kind: z.literal("system"), window: Count }),
  /** The earlier conversation, for a session that starts anew. */
  z.object({ kind: z.literal("handover"), window: Count }),
  /** Permission for the next model call. */
  z.object({ kind: z.literal("permit") }),
  /** A tool call of the model. Older workers do not send `tried` and `answered`. */
  z.object({
    ...{ kind: z.literal("call"), call: CallId, tool: z.string().max(200), args: z.unknown(), said: z.string() },
    /** How often the worker's own runtime had to restart in this turn. */
    tried: z.number().int().min(0).max(9).optional(),
    /** How many answers to calls with this id the turn held when it last started. */
    answered: Count.optional(),
  }),
  /** The outcome of a call that ran on the worker. */
  z.object({ kind: z.literal("outcome"), call: CallId, ok: z.boolean(), refused: z.boolean(), text: z.string() }),
]);
export type WorkerRequest = z.infer<typeof WorkerRequest>;

/** How a call is held: in a sandbox of this height, or outside of it because a person allowed that. */
const Held = z.object({ height: SandboxHeight, outside: z.boolean() });
export type Held = z.infer<typeof Held>;

const Answer = z.object({ ok: z.boolean(), text: z.string(), state: CallEnd.exclude(["done", "failed"]).exactOptional() });
/** The answers, by the kind of the question. */
export const ANSWERS = {
  code: z.object({ bundle: BlobRef.nullable() }),
  system: z.string(),
  handover: z.string(),
  permit: z.object({ refusal: z.string().nullable() }),
  /** "do": the call passed the gate, and the worker runs it with these arguments. Older daemons do not send `held`. */
  call: z.union([z.object({ answer: Answer }), z.object({ do: z.record(z.string(), z.unknown()), held: Held.optional() })]),
  outcome: Answer,
} satisfies Record<WorkerRequest["kind"], z.ZodType>;

const Code = z.custom<TurnErrorCode>((code) => typeof code === "string");
export const TurnValue: z.ZodType<TurnResult> = z.object({
  outcome: z.enum(["done", "failed", "aborted", "timed out"]),
  text: z.string(),
  error: z.object({ code: Code, message: z.string() }).optional(),
  remedy: z.string().optional(),
  usage: ReportedUsage,
  tools: z.array(z.string().max(200)).max(10_000),
  served: z.array(z.string().max(300)).max(100),
}) as z.ZodType<TurnResult>;

const ReportedModelCall = z.object({
  model: z.string().min(1).max(300),
  inputTokens: Count,
  outputTokens: Count,
  cacheReadTokens: Count,
  durationMs: Duration,
  rehearsal: z.boolean().optional(),
});

/** Reads what a model call used; throws if no worker can have used that. */
export function readModelCall(data: unknown): ModelCall {
  const told = ReportedModelCall.safeParse(data);
  if (!told.success) throw new UserError(`its worker reported a use of its model that cannot be: ${explainIssues(told.error)}.`);
  return told.data as ModelCall;
}

export const MAX_NOTICE = 2_000;

/** Events of a turn on a worker while it runs. */
export const ReportedTurnEvent = z.discriminatedUnion("kind", [
  z.object({ kind: z.literal("delta"), text: z.string() }),
  z.object({ kind: z.literal("restarted") }),
  z.object({
    kind: z.literal("tool"),
    tool: z.string().max(200),
    callId: CallId,
    state: z.enum(["started", "running", ...CallEnd.options]),
    args: z.string().max(10_000).exactOptional(),
    output: z.string().exactOptional(),
    exitCode: z.number().int().nullable().exactOptional(),
  }),
  z.object({ kind: z.literal("context"), use: ContextUse }),
  z.object({ kind: z.literal("notice"), text: z.string().max(MAX_NOTICE) }),
]) satisfies z.ZodType<Exclude<TurnEvent, { kind: "usage" }>>;

/** The names of the blobs that carry code to an attempt and its result back. */
export const codeName = (lease: string): string => `code-${lease}`;
export const leftName = (lease: string): string => `left-${lease}`;

/** The id of the job for a turn or for checks: stable across restarts, safe in a subject, and readable. */
export function jobIdOf(owner: string, again: number): string {
  const plain = owner.replace(/[^\w-]/g, "_");
  const hash = createHash("sha256").update(owner).digest("hex").slice(0, 12);
  return `${plain === owner && plain.length <= 80 ? plain : `${plain.slice(0, 80)}-${hash}`}-${again}`;
}
