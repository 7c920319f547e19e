import { z } from "zod";
import { designPrompt } from "../agents/prompts.ts";
import { clarifier, reviewMembers } from "../pipeline/kind.ts";
import { mostCallsWithReviews } from "../pipeline/most-calls.ts";
import { AgentName, CLARIFICATION_KEYWORD, Condition, Reviews } from "../pipeline/schema.ts";
import { isDemanded, lastRounds } from "../review/last-round.ts";
import { reviewersOf } from "../review/reviewers.ts";
import { phaseKind } from "./kind.ts";
import { writeText } from "./text.ts";

const name = "design";
const standard = {
  condition: "hasFrontendTasks",
  agent: "designer",
  clarificationAgent: "pm",
  reviews: [{ agent: "design-reviewer", clarificationKeyword: CLARIFICATION_KEYWORD, clarificationAgent: "pm" }],
};

/** Designs the frontend tasks and has the design reviewed. */
export const design = phaseKind({
  name,
  schema: z.strictObject({
    phase: z.literal(name),
    agent: AgentName.default(standard.agent),
    condition: Condition.optional(),
    clarificationAgent: AgentName.optional(),
    reviews: Reviews,
  }),
  standard,
  usedBy: ["implement"],
  members: ({ agent, clarificationAgent, reviews }) => [
    { name: agent, duty: "plan", label: "designs" },
    ...clarifier(clarificationAgent, agent),
    ...reviewMembers(reviews),
  ],
  mostCalls: ({ reviews, clarificationAgent }) => mostCallsWithReviews({ reviews, asksBack: clarificationAgent !== undefined }),
  reviewers: ({ id, reviews }) => reviewersOf(id, reviews),
  async run(context, phase, progress) {
    const text = await writeText(context, {
      phase: phase.id,
      what: "design",
      agent: phase.agent,
      prompt: designPrompt(context.about, progress),
      spec: progress.spec,
      reviews: phase.reviews,
      clarificationAgent: phase.clarificationAgent,
    });
    context.documents.write(`${phase.agent}.md`, `Design by ${phase.agent}`, text, context.served(phase.id));
    return { ...progress, design: text };
  },
  documents: ({ agent }) => [`${agent}.md`],
  askAgain: ({ id, reviews }, steps) => lastRounds(steps, (loop) => isDemanded(reviewersOf(id, reviews), loop)),
});
