import type { ReviewLoop, Run } from "../../../src/protocol/runs.ts";

export interface ShownApproval {
  round: number;
  /** The hash of the tree or text that was approved. */
  saw: string;
  /** The key of the step that gave the approval. */
  step: string;
  /** Whether what it approved has changed since, so that it no longer counts. */
  voided: boolean;
}

/** Every approval of a review loop, and whether it is still valid. */
export function approvalsOf(run: Pick<Run, "streams" | "loops">, loop: ReviewLoop): ShownApproval[] {
  const { key, approved, approvals, reviews } = loop;
  const given = approvals ?? (approved === null ? [] : [{ round: reviews, saw: approved }]);
  const isPast = isOvertaken(run, loop);
  return given.map(({ round, saw }) => ({ round, saw, step: `${key}/${round}`, voided: isPast || saw !== approved }));
}

/** Whether a loop's last approval is void: its stream has changed since, or the same reviewer had to review the whole again. */
function isOvertaken({ streams, loops }: Pick<Run, "streams" | "loops">, { key, agent, approved, stream }: ReviewLoop): boolean {
  const tree = stream === null ? null : (streams.find(({ number }) => number === stream)?.tree ?? null);
  if (approved !== null && tree !== null && /^[0-9a-f]{40}$/.test(approved) && approved !== tree) return true;
  return !key.includes("/again/") && loops.some((other) => other.agent === agent && other.key.includes("/again/"));
}

/** The keys of the steps whose approvals are void. */
export const voidedSteps = (run: Pick<Run, "streams" | "loops">): Set<string> =>
  new Set(run.loops.flatMap((loop) => approvalsOf(run, loop).flatMap(({ step, voided }) => (voided ? [step] : []))));
