import { z } from "zod";

/** How a call of a tool ended, by the word that the journal and every channel have for it. */
export const CallEnd = z.enum(["done", "failed", "refused", "unknown"]);
export type CallEnd = z.infer<typeof CallEnd>;

/** One call of a tool, as the journal has it. */
export const ToolCallRecord = z
  .object({
    /** Its id, which the events of the turn name too. */
    callId: z.string(),
    tool: z.string(),
    actor: z.string(),
    kind: z.enum(["read", "effect"]),
    /** JSON, secrets removed, shortened if long. */
    args: z.string(),
    state: z.enum(["begun", ...CallEnd.options]),
    /** Shortened if long; the hash is of the whole. */
    result: z.string().nullable(),
    resultHash: z.string().nullable(),
    durationMs: z.number().nullable(),
    createdAt: z.string(),
  })
  .meta({ id: "ToolCall" });

export const ToolCallList = z.object({ items: z.array(ToolCallRecord), next: z.string().optional() });
