import { z } from "zod";

export const ApprovalState = z.enum(["waiting", "allowed", "denied", "expired", "withdrawn"]);
export type ApprovalState = z.infer<typeof ApprovalState>;

export const ApprovalScope = z.enum(["once", "task", "project"]);
export type ApprovalScope = z.infer<typeof ApprovalScope>;

/** What waits for a person: one call of a tool, or a budget that is used up. */
export const Approval = z
  .object({
    /** Short enough to be typed. */
    id: z.string(),
    kind: z.enum(["call", "budget"]),
    owner: z.object({ kind: z.enum(["message", "task", "run"]), id: z.string() }),
    conversation: z.string().nullable(),
    squad: z.string().nullable(),
    actor: z.string(),
    tool: z.string(),
    /** One line that says what would be done. */
    summary: z.string(),
    command: z.string().nullable(),
    path: z.string().nullable(),
    diff: z.string().nullable(),
    cwd: z.string().nullable(),
    treeHash: z.string().nullable(),
    /** Why the model wants it, in its own words. */
    reason: z.string().nullable(),
    /** The rule that asked, and the one that each wider scope would write. */
    rule: z.string().nullable(),
    scopes: z.array(z.object({ scope: ApprovalScope, rule: z.string() })),
    state: ApprovalState,
    scope: ApprovalScope.nullable(),
    decidedBy: z.string().nullable(),
    note: z.string().nullable(),
    createdAt: z.string(),
    expiresAt: z.string(),
    decidedAt: z.string().nullable(),
  })
  .meta({ id: "Approval" });
export type Approval = z.infer<typeof Approval>;
