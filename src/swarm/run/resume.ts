import type { StepRow } from "../../store/runs.ts";
import type { PhaseKind } from "../phases/kind.ts";
import { kindOf } from "../pipeline/kind.ts";
import type { ResolvedPipeline } from "../pipeline/schema.ts";
import { attemptSession } from "./keys.ts";

/**
 * The steps that made a run fail, to be done again when it is resumed: those that failed themselves, and what the kind of a
 * failed phase wants asked again. What was finished before that stays.
 */
export function stepsToRepeat(
  steps: readonly StepRow[],
  { pipeline }: Pick<ResolvedPipeline, "pipeline">,
  kinds: readonly PhaseKind[],
): StepRow[] {
  const failed = steps.filter((step) => step.state === "failed");
  const phases = pipeline.filter(({ phase }) => failed.some((step) => step.kind === "phase" && step.phase === phase));
  const repeated = phases.flatMap((phase) => {
    const own = steps.filter((step) => step.phase === phase.phase);
    return kindOf(kinds, phase).askAgain?.(phase, own) ?? [];
  });
  return [...new Set([...failed, ...repeated])];
}

/** The sessions in which only these steps were asked: when they are asked again, they begin afresh. */
export function ownSessions(runId: string, steps: readonly StepRow[]): string[] {
  return steps
    .filter((step) => step.kind === "call")
    .flatMap(({ key, attempts, session_id }) => {
      const own = Array.from({ length: attempts }, (_, index) => attemptSession(runId, key, index + 1));
      return session_id !== null && own.includes(session_id) ? own : [];
    });
}
