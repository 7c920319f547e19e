import { z } from "zod";

export const CONDITIONS = ["hasFrontendTasks", "differentReviewModel"] as const;
export const DEFAULT_MODELS = { primaryModel: "claude-opus-4-6-fast", reviewModel: "gpt-5.2-codex" } as const;
export const CLARIFICATION_KEYWORD = "CLARIFICATION_NEEDED";
export const FRONTEND_MARKER = "[FRONTEND]";

const AgentName = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/, "an agent's name is letters, digits, dashes and underscores");
const Iterations = z.number().int().min(1).max(100).describe("How many times the work may be sent back and revised.");
const Keyword = z
  .string()
  .refine((text) => text.trim() === text && /\p{L}/u.test(text) && !/[\r\n]/.test(text) && text.length <= 60, {
    message: "a keyword is one line of at most 60 characters with a letter in it and no space around it",
  })
  .refine((text) => !/^(?:not?|never|un|dis)[\s_-]/i.test(text), {
    message: "a keyword that begins with a negation can never be told from a rejection",
  });
const Condition = z.enum(CONDITIONS).describe("The phase runs only when this holds.");
const OnExhausted = z
  .enum(["continue", "fail"])
  .default("continue")
  .describe("What happens when the revisions are used up without an approval.");

export const Review = z.strictObject({
  agent: AgentName,
  maxIterations: Iterations,
  approvalKeyword: Keyword,
  clarificationKeyword: Keyword.optional(),
  clarificationAgent: AgentName.optional(),
  onExhausted: OnExhausted,
});
export type Review = z.infer<typeof Review>;

export const Qa = z.strictObject({
  agent: AgentName,
  maxIterations: Iterations,
  approvalKeyword: Keyword,
  onExhausted: OnExhausted,
});

const Reviews = z.array(Review).default([]);

export const PHASES = {
  spec: z.strictObject({
    phase: z.literal("spec"),
    agent: AgentName,
    reviews: Reviews,
    condition: Condition.optional(),
  }),
  decompose: z.strictObject({
    phase: z.literal("decompose"),
    agent: AgentName,
    frontendMarker: z.string().trim().min(1).default(FRONTEND_MARKER),
  }),
  design: z.strictObject({
    phase: z.literal("design"),
    agent: AgentName,
    condition: Condition.optional(),
    clarificationAgent: AgentName.optional(),
    reviews: Reviews,
  }),
  implement: z.strictObject({
    phase: z.literal("implement"),
    agent: AgentName,
    parallel: z.boolean(),
    reviews: Reviews,
    qa: Qa.optional(),
    clarificationAgent: AgentName.optional(),
    clarificationKeyword: Keyword.optional(),
  }),
  "cross-model-review": z.strictObject({
    phase: z.literal("cross-model-review"),
    agent: AgentName,
    fixAgent: AgentName,
    maxIterations: Iterations,
    approvalKeyword: Keyword,
    onExhausted: OnExhausted,
    condition: Condition.optional(),
  }),
} as const;

export const PHASE_NAMES = Object.keys(PHASES) as (keyof typeof PHASES)[];
export type PhaseName = keyof typeof PHASES;
export type SpecPhase = z.infer<(typeof PHASES)["spec"]>;
export type DecomposePhase = z.infer<(typeof PHASES)["decompose"]>;
export type DesignPhase = z.infer<(typeof PHASES)["design"]>;
export type ImplementPhase = z.infer<(typeof PHASES)["implement"]>;
export type CrossModelPhase = z.infer<(typeof PHASES)["cross-model-review"]>;

export const Phase = z.discriminatedUnion("phase", [
  PHASES.spec,
  PHASES.decompose,
  PHASES.design,
  PHASES.implement,
  PHASES["cross-model-review"],
]);
export type Phase = z.infer<typeof Phase>;

/** Everything `swarm.config.yaml` may say. A key that is not here is an error. */
export const Pipeline = z.strictObject({
  primaryModel: z.string().trim().min(1).optional(),
  reviewModel: z.string().trim().min(1).optional(),
  agents: z
    .record(AgentName, z.string().trim().min(1))
    .default({})
    .describe("Name to source: builtin:<name>, or a file of the repo."),
  pipeline: z.array(Phase).min(1),
  concurrency: z.number().int().min(1).max(32).default(4).describe("How many streams work at once."),
  checks: z.array(z.string().trim().min(1)).optional().describe("The commands that show whether the code works."),
});
export type Pipeline = z.infer<typeof Pipeline>;

/** A pipeline with both models decided: the environment over the file over the defaults. */
export type ResolvedPipeline = Pipeline & { primaryModel: string; reviewModel: string };

/** The JSON Schema for editors. */
export function pipelineJsonSchema(): unknown {
  return { title: "Swarm pipeline", ...z.toJSONSchema(Pipeline, { io: "input" }) };
}
