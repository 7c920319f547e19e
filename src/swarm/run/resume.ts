import type { StepRow } from "../../store/runs.ts";
import type { PhaseKind } from "../phases/kind.ts";
import { kindOf } from "../pipeline/kind.ts";
import type { ResolvedPipeline } from "../pipeline/schema.ts";
import { attemptSession } from "../steps/keys.ts";

/** The steps to repeat when a failed run is resumed: those that failed, and what the kind of a failed phase wants asked again. */
export function stepsToRepeat(
  steps: readonly StepRow[],
  { pipeline }: Pick<ResolvedPipeline, "pipeline">,
  kinds: readonly PhaseKind[],
): StepRow[] {
  const failed = steps.filter((step) => step.state === "failed");
  const phases = pipeline.filter(({ id }) => failed.some((step) => step.kind === "phase" && step.phase === id));
  const repeated = phases.flatMap((phase) => {
    // Checks of the whole run once per tree, in whichever phase comes first.
    const own = steps.filter((step) => step.phase === phase.id || (step.kind === "checks" && step.stream === null));
    return kindOf(kinds, phase).askAgain?.(phase, own) ?? [];
  });
  return [...new Set([...failed, ...repeated])];
}

/** The sessions that belong to these steps alone, to be deleted before the steps are repeated. */
export function ownSessions(runId: string, steps: readonly StepRow[]): string[] {
  return steps
    .filter((step) => step.kind === "call")
    .flatMap(({ key, attempts, session_id }) => {
      const own = Array.from({ length: attempts }, (_, index) => attemptSession(runId, key, index + 1));
      return session_id !== null && own.includes(session_id) ? own : [];
    });
}
