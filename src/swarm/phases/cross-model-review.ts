import { z } from "zod";
import { phaseNextTo, revisions } from "../pipeline/kind.ts";
import { total } from "../pipeline/most-calls.ts";
import { AgentName, Condition, Iterations, Keyword, OnExhausted, type Qa, REVIEW_DEFAULTS } from "../pipeline/schema.ts";
import { lastRounds } from "../review/last-round.ts";
import { NotApproved } from "../steps/journal.ts";
import { reviewerKey, roundKeys } from "../steps/keys.ts";
import { implement } from "./implement.ts";
import { phaseKind } from "./kind.ts";
import { reviewWhole } from "./whole.ts";

const name = "cross-model-review";
const standard = { condition: "differentReviewModel", agent: "cross-model", fixAgent: "engineer", ...REVIEW_DEFAULTS };

const schema = z.strictObject({
  phase: z.literal(name),
  agent: AgentName.default(standard.agent),
  fixAgent: AgentName.default(standard.fixAgent),
  maxIterations: Iterations.default(standard.maxIterations),
  approvalKeyword: Keyword.default(standard.approvalKeyword),
  onExhausted: OnExhausted,
  condition: Condition.optional(),
});

const reviewerOf = ({ agent, maxIterations, approvalKeyword, onExhausted }: Qa): Qa => ({
  ...{ agent, maxIterations, approvalKeyword, onExhausted },
});

/** Another model reviews everything together, and the fixing agent addresses its findings. */
export const crossModelReview = phaseKind({
  name,
  schema,
  standard,
  needs: implement.name,
  members: (phase) => [
    { name: phase.agent, duty: "review", label: `reviews, ${revisions(phase)}`, on: "review" },
    { name: phase.fixAgent, duty: "build", label: "fixes", key: "fixAgent", onDemand: true },
  ],
  approvers: (phase) => [{ ...reviewerOf(phase), duty: "review", on: "review" }],
  /** Earlier approvers are asked only about what a fix has changed. */
  mostCalls(phase, { approvers }) {
    const fixes = total([phase, ...approvers]);
    return 1 + fixes + approvers.length * fixes + fixes;
  },
  compares: (phase, pipeline) => ({
    builder: phaseNextTo(pipeline, phase, "before", implement)?.agent,
    reviewer: phase.agent,
  }),
  firstAsked: ({ id, agent }, { pipeline, cwd }) => [
    { key: roundKeys(reviewerKey(id, agent), 1).review, agent, duty: "review", model: pipeline.reviewModel, cwd },
  ],
  reviewers: ({ id, agent }) => [{ key: reviewerKey(id, agent), agent }],
  whySkipped: (_, { tree, baseTree }) => (tree === baseTree ? "nothing was changed" : undefined),
  async run(context, phase, progress) {
    const { id, agent, fixAgent } = phase;
    const first = { ...reviewerOf(phase), key: reviewerKey(id, agent) };
    const { wentOn, tree, replies } = await reviewWhole(context, progress, { id, first, on: "review", fixAgent });
    context.documents.write(`${name}.md`, `Review by ${agent}`, replies.join("\n\n"), context.served(id));
    if (!wentOn) throw new NotApproved(`${id}: ${agent} did not approve`);
    return { ...progress, tree };
  },
  documents: () => [`${name}.md`],
  askAgain: ({ onExhausted }, steps) => lastRounds(steps, () => onExhausted === "fail"),
});
