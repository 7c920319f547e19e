import { MAX_CLARIFICATIONS } from "./limits.ts";
import type { Qa, Review } from "./schema.ts";

export interface ReviewedWork {
  reviews: readonly Review[];
  qa?: Qa | undefined;
  /** Whether the agent that does the work may ask questions. */
  asksBack: boolean;
  /** What merging adds: calls to the agent that does the work, and states to review. */
  merging?: { calls: number; states: number };
}

/** The most calls that reviewed work can take: a revision voids all approvals, so every reviewer may see every state once. */
export function mostCallsWithReviews({ reviews, qa, asksBack, merging = { calls: 0, states: 0 } }: ReviewedWork): number {
  const reviewers = [...reviews, ...(qa ? [qa] : [])];
  const revisions = total(reviewers);
  const perRequest = asksBack ? 1 + 2 * MAX_CLARIFICATIONS : 1;
  const answers = total(reviews.filter((review) => review.clarificationAgent));
  return (1 + revisions + merging.calls) * perRequest + answers + reviewers.length * (1 + revisions + merging.states);
}

/** How many revisions the reviewers may ask for together. */
export function total(reviewers: readonly Pick<Qa, "maxIterations">[]): number {
  return reviewers.reduce((sum, { maxIterations }) => sum + maxIterations, 0);
}
