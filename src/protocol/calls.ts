import { z } from "zod";

/** How a tool call ended, in the words of the journal and of every channel. */
export const CallEnd = z.enum(["done", "failed", "refused", "unknown"]);
export type CallEnd = z.infer<typeof CallEnd>;

/** A tool call as the journal stores it. */
export const ToolCallRecord = z
  .object({
    /** The id that the turn's events use too. */
    callId: z.string(),
    tool: z.string(),
    actor: z.string(),
    kind: z.enum(["read", "effect"]),
    /** JSON, redacted, and shortened if long. */
    args: z.string(),
    state: z.enum(["begun", ...CallEnd.options]),
    /** Shortened if long; the hash covers the whole result. */
    result: z.string().nullable(),
    resultHash: z.string().nullable(),
    durationMs: z.number().nullable(),
    createdAt: z.string(),
  })
  .meta({ id: "ToolCall" });

export const ToolCallList = z.object({ items: z.array(ToolCallRecord), next: z.string().optional() });
