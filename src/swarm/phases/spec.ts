import { z } from "zod";
import { specPrompt } from "../agents/prompts.ts";
import { reviewMembers } from "../pipeline/kind.ts";
import { mostCallsWithReviews } from "../pipeline/most-calls.ts";
import { AgentName, Condition, Reviews } from "../pipeline/schema.ts";
import { isDemanded, lastRounds } from "../review/last-round.ts";
import { reviewersOf } from "../review/reviewers.ts";
import { draftKey } from "../steps/keys.ts";
import { phaseKind } from "./kind.ts";
import { writeText } from "./text.ts";

const name = "spec";
const standard = { agent: "pm", reviews: [{ agent: "pm-reviewer" }, { agent: "spec-reviewer" }] };

/** Writes the specification and has it reviewed. */
export const spec = phaseKind({
  name,
  schema: z.strictObject({
    phase: z.literal(name),
    agent: AgentName.default(standard.agent),
    reviews: Reviews,
    condition: Condition.optional(),
  }),
  standard,
  usedBy: ["decompose", "design", "implement"],
  members: ({ agent, reviews }) => [{ name: agent, duty: "plan", label: "writes" }, ...reviewMembers(reviews)],
  mostCalls: ({ reviews }) => mostCallsWithReviews({ reviews, asksBack: false }),
  firstAsked: ({ id, agent }, { pipeline, cwd }) => [
    { key: draftKey(id, agent), agent, duty: "plan", model: pipeline.primaryModel, cwd },
  ],
  reviewers: ({ id, reviews }) => reviewersOf(id, reviews),
  async run(context, phase, progress) {
    const text = await writeText(context, {
      phase: phase.id,
      what: "specification",
      agent: phase.agent,
      prompt: specPrompt(context.about, progress),
      spec: "",
      reviews: phase.reviews,
      next: context.firstAskedAfter(phase),
    });
    context.documents.write(`${phase.agent}.md`, `Specification by ${phase.agent}`, text, context.served(phase.id));
    return { ...progress, spec: text };
  },
  documents: ({ agent }) => [`${agent}.md`],
  askAgain: ({ id, reviews }, steps) => lastRounds(steps, (loop) => isDemanded(reviewersOf(id, reviews), loop)),
});
