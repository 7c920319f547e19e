import { z } from "zod";

/** One call of a tool, as the journal has it. */
export const ToolCallRecord = z
  .object({
    tool: z.string(),
    actor: z.string(),
    kind: z.enum(["read", "effect"]),
    /** JSON, secrets removed, shortened if long. */
    args: z.string(),
    state: z.enum(["begun", "done", "failed", "refused", "unknown"]),
    /** Shortened if long; the hash is of the whole. */
    result: z.string().nullable(),
    resultHash: z.string().nullable(),
    durationMs: z.number().nullable(),
    createdAt: z.string(),
  })
  .meta({ id: "ToolCall" });

export const ToolCallList = z.object({ items: z.array(ToolCallRecord), next: z.string().optional() });
