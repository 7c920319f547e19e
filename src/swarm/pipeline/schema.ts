import { z } from "zod";

export const CONDITIONS = ["hasFrontendTasks", "differentReviewModel", "noPlanProvided"] as const;
export const DEFAULT_MODELS = { primaryModel: "claude-opus-4-6-fast", reviewModel: "gpt-5.2-codex" } as const;
/** Defaults: how often work is sent back, and the keyword that approves it. */
export const REVIEW_DEFAULTS = { maxIterations: 3, approvalKeyword: "APPROVED" } as const;
export const QA_DEFAULTS = { maxIterations: 5, approvalKeyword: "ALL_PASSED" } as const;
/** The default pipeline's names for agents that ship under others. */
export const DEFAULT_AGENTS: ReadonlyMap<string, string> = new Map([
  ["spec-reviewer", "builtin:eng-spec-reviewer"],
  ["code-reviewer", "builtin:eng-code-reviewer"],
  ["cross-model", "builtin:cross-model-reviewer"],
]);
export const CLARIFICATION_KEYWORD = "CLARIFICATION_NEEDED";
export const FRONTEND_MARKER = "[FRONTEND]";

export const AgentName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, "an agent's name is letters, digits, dashes and underscores");
export const Iterations = z.number().int().min(1).max(100).describe("How many times the work may be sent back and revised.");
export const Keyword = z
  .string()
  .refine((text) => text.trim() === text && /\p{L}/u.test(text) && !/[\r\n]/.test(text) && text.length <= 60, {
    message: "a keyword is one line of at most 60 characters with a letter in it and no space around it",
  })
  .refine((text) => !/^(?:not?|never|un|dis)[\s_-]/i.test(text), {
    message: "a keyword that begins with a negation can never be told from a rejection",
  });
export const Condition = z.enum(CONDITIONS).describe("The phase runs only when this holds.");
export type Condition = z.infer<typeof Condition>;
export const OnExhausted = z
  .enum(["continue", "fail"])
  .default("continue")
  .describe("What happens when the revisions are used up without an approval.");

export const Review = z.strictObject({
  agent: AgentName,
  maxIterations: Iterations.default(REVIEW_DEFAULTS.maxIterations),
  approvalKeyword: Keyword.default(REVIEW_DEFAULTS.approvalKeyword),
  clarificationKeyword: Keyword.optional(),
  clarificationAgent: AgentName.optional(),
  onExhausted: OnExhausted,
});
export type Review = z.infer<typeof Review>;

export const Qa = z.strictObject({
  agent: AgentName,
  maxIterations: Iterations.default(QA_DEFAULTS.maxIterations),
  approvalKeyword: Keyword.default(QA_DEFAULTS.approvalKeyword),
  onExhausted: OnExhausted,
});
export type Qa = z.infer<typeof Qa>;

export const Reviews = z.array(Review).default([]);

/** What every phase of a pipeline has; the rest belongs to its kind. */
export interface Phase {
  phase: string;
  condition?: Condition | undefined;
}

/** A phase at its place in a pipeline. */
export type Placed<P extends Phase = Phase> = P & {
  /** Its name in records and keys: the kind's name; from the second of a kind on with a count, as in `spec~2`. */
  id: string;
};

/** Names the phases of a pipeline. The first of each kind has no count, as when a kind could occur only once. */
export function placed(phases: readonly Phase[]): Placed[] {
  return phases.map((phase, index) => {
    const count = phases.slice(0, index + 1).filter((each) => each.phase === phase.phase).length;
    return { ...phase, id: count === 1 ? phase.phase : `${phase.phase}~${count}` };
  });
}

/** The schema of one kind of phase: a strict object whose `phase` is the kind's name. */
export type PhaseSchema = z.ZodObject<{ phase: z.ZodLiteral<string> }, z.core.$strict>;

const Command = z.string().trim().min(1);

/** Everything `swarm.config.yaml` may say. Unknown keys are errors. */
export function pipelineSchema(kinds: readonly { schema: PhaseSchema }[]) {
  const [first, ...others] = kinds.map(({ schema }) => schema);
  if (!first) throw new Error("a pipeline needs at least one kind of phase");
  const phase: z.ZodType<Phase> = z.discriminatedUnion("phase", [first, ...others]);
  return z.strictObject({
    primaryModel: z.string().trim().min(1).optional(),
    reviewModel: z.string().trim().min(1).optional(),
    fastModel: z.string().trim().min(1).optional().describe("Asked for the list of tasks; without it primaryModel."),
    agents: z
      .record(AgentName, z.string().trim().min(1))
      .default({})
      .describe("Name to source: builtin:<name>, or a file of the repo."),
    pipeline: z.array(phase).min(1),
    concurrency: z.number().int().min(1).max(32).default(4).describe("How many streams work at once."),
    commits: z
      .enum(["squash", "merge"])
      .optional()
      .describe("The branch of several streams: one commit for all (squash, the default), or one for each, merged."),
    commitMsgHook: z
      .boolean()
      .optional()
      .describe("Whether the project's commit-msg hook is run, in the sandbox, on the messages of the branch."),
    checks: z.array(Command).optional().describe("The commands that show whether the code works."),
    verify: z
      .strictObject({ build: Command.optional(), test: Command.optional(), lint: Command.optional() })
      .optional()
      .describe("The same by their purpose, in place of checks."),
  });
}
export type Pipeline = z.infer<ReturnType<typeof pipelineSchema>>;

/** A pipeline with its models resolved: the environment overrides the file, the file overrides the defaults. */
export type ResolvedPipeline = Omit<Pipeline, "pipeline" | "verify"> & {
  primaryModel: string;
  reviewModel: string;
  pipeline: Placed[];
};

/** The JSON Schema for editors. */
export function pipelineJsonSchema(kinds: readonly { schema: PhaseSchema }[]): unknown {
  const schema = z.toJSONSchema(pipelineSchema(kinds), { io: "input", override: ({ jsonSchema }) => allowNull(jsonSchema) });
  return { title: "Swarm pipeline", ...schema };
}

/** Optional keys may be null too. */
function allowNull({ properties = {}, required = [] }: z.core.JSONSchema.BaseSchema): void {
  for (const [key, value] of Object.entries(properties))
    if (!required.includes(key) && typeof value === "object") properties[key] = { anyOf: [value, { type: "null" }] };
}
