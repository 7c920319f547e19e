import { z } from "zod";

/** A plan in the making: the pm asks, a person answers, an engineer analyses, and plan.md is written. */
export const Planning = z
  .object({
    id: z.string(),
    projectPath: z.string(),
    issue: z.string(),
    status: z.enum(["thinking", "asking", "done", "failed", "cancelled"]),
    /** What the pm wants to know, while it waits for an answer. */
    questions: z.string().nullable(),
    /** How often it has asked. */
    round: z.number().int(),
    /** Where the plan was written. */
    path: z.string().nullable(),
    requirements: z.string().nullable(),
    error: z.string().nullable(),
    createdAt: z.string(),
    finishedAt: z.string().nullable(),
  })
  .meta({ id: "Planning" });
export type Planning = z.infer<typeof Planning>;
