import { ReviewLoop } from "../../protocol/runs.ts";
import { readJson } from "../../store/read-json.ts";
import type { StepRow } from "../../store/runs.ts";
import type { Phase, ResolvedPipeline } from "../pipeline/schema.ts";
import { sessionOf } from "./caller.ts";
import { reviewersOf } from "./context.ts";
import { streamPrefix } from "./prefetch.ts";

/**
 * The steps that made a run fail, to be done again when it is resumed: those that failed themselves, the replies that held no
 * tasks, and the last review of a loop that had to approve, with all that came after it. What was finished before stays.
 */
export function blamedFor(steps: readonly StepRow[], pipeline: ResolvedPipeline): StepRow[] {
  const failed = steps.filter((step) => step.state === "failed");
  const phases = pipeline.pipeline.filter(({ phase }) => failed.some((step) => step.kind === "phase" && step.phase === phase));
  return [...new Set([...failed, ...phases.flatMap((phase) => blamedIn(phase, steps))])];
}

function blamedIn(phase: Phase, all: readonly StepRow[]): StepRow[] {
  const steps = all.filter((step) => step.phase === phase.phase);
  if (phase.phase === "decompose") {
    const calls = steps.filter((step) => step.kind === "call");
    return calls.some((step) => step.state === "failed") ? [] : calls;
  }
  return steps
    .flatMap((step) => (step.kind === "loop" ? (readJson(ReviewLoop, step.result) ?? []) : []))
    .filter((loop) => loop.outcome === "exhausted" && mustApprove(phase, loop))
    .flatMap((loop) => endOf(loop, steps));
}

function mustApprove(phase: Phase, { key, stream }: ReviewLoop): boolean {
  if (phase.phase === "cross-model-review") return phase.onExhausted === "fail";
  if (phase.phase === "decompose") return false;
  const prefix = stream === null ? phase.phase : streamPrefix(stream);
  const qa = phase.phase === "implement" && phase.qa ? [{ ...phase.qa, key: `${prefix}/qa:${phase.qa.agent}` }] : [];
  return [...reviewersOf(prefix, phase.reviews), ...qa].some(
    (reviewer) => reviewer.key === key && reviewer.onExhausted === "fail",
  );
}

/** A loop's last review, what followed it, and the checks that failed if it was they who stood against the approval. */
function endOf({ key, stream, reviews }: ReviewLoop, steps: readonly StepRow[]): StepRow[] {
  const last = `${key}/${reviews}`;
  const ending = steps.filter((step) => step.key === last || step.key.startsWith(`${last}/`));
  if (ending.find((step) => step.key === last)?.verdict !== "approved") return ending;
  const checks = steps.findLast((step) => step.kind === "checks" && step.stream === stream && step.verdict === "failed");
  return checks ? [...ending, checks] : ending;
}

/** The sessions in which these steps were asked and nothing else was: asked again, they begin afresh. */
export function ownSessions(runId: string, steps: readonly StepRow[]): string[] {
  return steps
    .filter((step) => step.kind === "call")
    .flatMap(({ key, attempts, session_id }) => {
      const own = Array.from({ length: attempts }, (_, index) => sessionOf(runId, `${key}#${index + 1}`));
      return session_id !== null && own.includes(session_id) ? own : [];
    });
}
