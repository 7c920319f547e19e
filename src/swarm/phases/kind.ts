import type { z } from "zod";
import type { StepRow } from "../../store/runs.ts";
import type { UpcomingCall } from "../agents/caller.ts";
import type { Progress, RunContext } from "../context/context.ts";
import type { DeclaredKind } from "../pipeline/kind.ts";
import type { Phase, PhaseSchema, Placed, ResolvedPipeline } from "../pipeline/schema.ts";
import type { Reviewer } from "../review/loop.ts";
import type { Workplace } from "../workspace/workspace.ts";

/**
 * One kind of phase: everything that pipelines and runs need to know about it. `P` is such a phase as the file has it. A pipeline
 * may have several of a kind, so steps and records use the phase's `id`.
 */
export interface PhaseKind<P extends Phase = Phase> extends DeclaredKind<P> {
  /** Does the phase's work. Throws `RunFailed` when the run cannot go on. */
  run(context: RunContext, phase: Placed<P>, progress: Progress): Promise<Progress>;
  /**
   * The run's documents that it writes; `*` matches anything. If an earlier phase writes the same name, this phase's is called
   * `name~2.md`.
   */
  documents(phase: P): string[];
  /** The finished steps to repeat when a run is resumed after this phase failed; failed steps are repeated anyway. */
  askAgain?(phase: Placed<P>, steps: readonly StepRow[]): StepRow[];
  /** The agents asked first, if known before the phase begins: their sessions are prepared in advance. */
  firstAsked?(phase: Placed<P>, at: { pipeline: ResolvedPipeline; cwd: string }): UpcomingCall[];
  /** Reviewers whose loops are recorded as skipped when the phase is. */
  reviewers?(phase: Placed<P>): Pick<Reviewer, "key" | "agent">[];
  /** Why it is skipped, apart from its condition. */
  whySkipped?(phase: P, progress: Progress): string | undefined;
  /** Where it works; only for a kind that changes the project. */
  workplace?(phase: P): Workplace["kind"];
}

/** Types a kind's functions by its schema. */
export function phaseKind<S extends PhaseSchema>(kind: PhaseKind<z.infer<S>> & { schema: S }) {
  return kind;
}
