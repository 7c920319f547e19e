import { z } from "zod";

export const ApprovalState = z.enum(["waiting", "allowed", "denied", "expired", "withdrawn"]);
export type ApprovalState = z.infer<typeof ApprovalState>;

/** The undecided questions that running work waits for. */
export const WaitsFor = z.object({
  kind: z.enum(["approval", "budget"]).describe("budget: only used-up budgets hold it up"),
  /** Their ids. */
  approvals: z.array(z.string()),
});
export type WaitsFor = z.infer<typeof WaitsFor>;

export const ApprovalScope = z.enum(["once", "task", "project"]);
export type ApprovalScope = z.infer<typeof ApprovalScope>;

/** A scope that a decision can have, and the rule that it would create; `once` creates none. */
export const ScopeOffer = z.object({
  scope: ApprovalScope,
  /** In words. */
  rule: z.string(),
  /** The glob that the rule would store. */
  match: z.string().optional(),
});
export type ScopeOffer = z.infer<typeof ScopeOffer>;

/** Something that waits for a person: one tool call, or an exhausted budget. */
export const Approval = z
  .object({
    /** Short enough to type. */
    id: z.string(),
    kind: z.enum(["call", "budget"]),
    owner: z.object({ kind: z.enum(["message", "task", "run", "schedule"]), id: z.string() }),
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
    /** The rule or mode that requires the approval. */
    rule: z.string().nullable(),
    scopes: z.array(ScopeOffer),
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

/** A person's decision on an approval. */
export const ApprovalDecision = z.strictObject({
  decision: z.enum(["allow", "deny"]),
  scope: ApprovalScope.default("once"),
  note: z.string().trim().max(2_000).optional(),
});

export type ApprovalDecision = z.output<typeof ApprovalDecision>;

/** A rule that a person created by deciding for more than one call. */
export const KeptRule = z
  .object({
    id: z.string(),
    scope: z.enum(["task", "project"]),
    /** The id of the message, task or run, or the project's folder. */
    place: z.string(),
    tool: z.string(),
    match: z.string(),
    /** The approval that created it. */
    approval: z.string(),
    createdAt: z.string(),
  })
  .meta({ id: "ApprovalRule" });
export type KeptRule = z.infer<typeof KeptRule>;
