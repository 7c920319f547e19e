import { CLARIFICATION_KEYWORD, type Qa, type Review } from "../pipeline/schema.ts";
import { qaKey, reviewerKey } from "../steps/keys.ts";
import type { Reviewer } from "./loop.ts";

/** The reviewers of a list of reviews; an agent listed twice is two reviewers. */
export function reviewersOf(prefix: string, reviews: readonly Review[]): Reviewer[] {
  return reviews.map((review, index) => {
    const occurrence = reviews.slice(0, index + 1).filter((other) => other.agent === review.agent).length;
    return {
      key: reviewerKey(prefix, review.agent, occurrence),
      agent: review.agent,
      maxIterations: review.maxIterations,
      approvalKeyword: review.approvalKeyword,
      clarificationAgent: review.clarificationAgent,
      clarificationKeyword: review.clarificationAgent ? (review.clarificationKeyword ?? CLARIFICATION_KEYWORD) : undefined,
      onExhausted: review.onExhausted,
    };
  });
}

/** The tester as a reviewer, which comes last. */
export function testersOf(prefix: string, qa: Qa | undefined): Reviewer[] {
  return qa ? [{ ...qa, key: qaKey(prefix, qa.agent) }] : [];
}
