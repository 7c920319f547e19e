import type { z } from "zod";
import type { Duty } from "./agents.ts";
import type { Phase, PhaseSchema, Qa, ResolvedPipeline, Review } from "./schema.ts";

/** Somebody who may be asked in a phase. */
export interface Member {
  name: string;
  duty: Duty;
  /** What the member does, for the plan. */
  label: string;
  /** The phase's key that names it, if it is not `agent`. */
  key?: string;
  /** Asked on the review model, unless it has one of its own. */
  review?: boolean;
}

/** What is known of a kind of phase before anything runs. `P` is such a phase as the file has it. */
export interface DeclaredKind<P extends Phase = Phase> {
  name: string;
  /** A key called `agent`, or ending in `Agent`, names an agent; `reviews` and `qa` are checked as review loops. */
  schema: PhaseSchema;
  /** A kind that must come before this one. */
  needs?: string;
  members(phase: P): Member[];
  /** The most agent calls, before retries of a call. */
  mostCalls(phase: P, given: { maxRetries: number; pipeline: ResolvedPipeline }): number;
  /** `mostCalls` counts the calls of a single task. */
  perTask?: boolean;
  /** Whose models `differentReviewModel` compares; without this, the two models of the file. */
  compares?(phase: P, pipeline: ResolvedPipeline): { builder: string | undefined; reviewer: string };
}

export function kindOf<K extends DeclaredKind>(kinds: readonly K[], { phase }: Phase): K {
  const kind = kinds.find(({ name }) => name === phase);
  if (!kind) throw new Error(`"${phase}" is not among the kinds of phases`);
  return kind;
}

/** The phase of a kind, if the pipeline has one. */
export function phaseOf<S extends PhaseSchema>(
  { pipeline }: Pick<ResolvedPipeline, "pipeline">,
  kind: { name: string; schema: S },
): z.infer<S> | undefined {
  return pipeline.find((phase): phase is z.infer<S> => phase.phase === kind.name);
}

/** The members that review, and those who answer their questions. */
export function reviewMembers(reviews: readonly Review[]): Member[] {
  return reviews.flatMap((review) => [
    { name: review.agent, duty: "review", label: `reviews, ${revisions(review)}` },
    ...clarifier(review.clarificationAgent, review.agent),
  ]);
}

export function clarifier(agent: string | undefined, asker: string): Member[] {
  return agent ? [{ name: agent, duty: "plan", label: `answers ${asker}` }] : [];
}

/** How often a reviewer may send the work back, and the word that ends it. */
export function revisions({ maxIterations, approvalKeyword }: Pick<Qa, "maxIterations" | "approvalKeyword">): string {
  return `at most ${maxIterations} revisions, "${approvalKeyword}"`;
}
