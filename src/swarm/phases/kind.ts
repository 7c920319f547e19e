import type { z } from "zod";
import type { StepRow } from "../../store/runs.ts";
import type { DeclaredKind } from "../pipeline/kind.ts";
import type { Phase, PhaseSchema, ResolvedPipeline } from "../pipeline/schema.ts";
import type { Reviewer } from "../review/loop.ts";
import type { Expected } from "../run/caller.ts";
import type { Progress, RunContext } from "../run/context.ts";
import type { Workplace } from "../run/workspace.ts";

/** One kind of phase: everything that pipelines and runs need to know of it. `P` is such a phase as the file has it. */
export interface PhaseKind<P extends Phase = Phase> extends DeclaredKind<P> {
  /** Does the phase's work. Throws `RunFailed` when the run cannot go on. */
  run(context: RunContext, phase: P, progress: Progress): Promise<Progress>;
  /** The files it writes among the run's documents; `*` stands for anything. */
  documents(phase: P): string[];
  /** The finished steps to repeat when a run is resumed after this phase failed; failed steps are repeated anyway. */
  askAgain?(phase: P, steps: readonly StepRow[]): StepRow[];
  /** Who is asked first, if that is known before the phase begins: their sessions are made in advance. */
  firstAsked?(phase: P, at: { pipeline: ResolvedPipeline; cwd: string }): Expected[];
  /** Reviewers whose loops are recorded as skipped when the phase is. */
  reviewers?(phase: P): Pick<Reviewer, "key" | "agent">[];
  /** Why it is skipped, besides its condition. */
  whySkipped?(phase: P, progress: Progress): string | undefined;
  /** Where it works; only for a kind that changes the project. */
  workplace?(phase: P): Workplace["kind"];
}

/** Types a kind's functions by its schema. */
export function phaseKind<S extends PhaseSchema>(kind: PhaseKind<z.infer<S>> & { schema: S }) {
  return kind;
}
