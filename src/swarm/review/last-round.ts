import { ReviewLoop } from "../../protocol/runs.ts";
import type { StepRow } from "../../store/runs.ts";
import { belongsToRound, roundKeys } from "../steps/keys.ts";
import { readResult } from "../steps/stored.ts";
import type { Reviewer } from "./loop.ts";

/** The steps to repeat so that loops that had to approve can give another verdict: each one's last review and what followed. */
export function lastRounds(steps: readonly StepRow[], mustApprove: (loop: ReviewLoop) => boolean): StepRow[] {
  return steps
    .flatMap((step) => (step.kind === "loop" ? (readResult(ReviewLoop, step) ?? []) : []))
    .filter((loop) => loop.outcome === "exhausted" && mustApprove(loop))
    .flatMap((loop) => lastRound(loop, steps));
}

/** Whether a loop belongs to a reviewer who must approve for the run to go on. */
export function isDemanded(reviewers: readonly Reviewer[], { key }: ReviewLoop): boolean {
  return reviewers.some((reviewer) => reviewer.key === key && reviewer.onExhausted === "fail");
}

/** Includes failed checks if they voided the reviewer's approval. */
function lastRound({ key, stream, reviews }: ReviewLoop, steps: readonly StepRow[]): StepRow[] {
  const { review } = roundKeys(key, reviews);
  const round = steps.filter((step) => belongsToRound(step.key, review));
  if (round.find((step) => step.key === review)?.verdict !== "approved") return round;
  const checks = steps.findLast((step) => step.kind === "checks" && step.stream === stream && step.verdict === "failed");
  return checks ? [...round, checks] : round;
}
