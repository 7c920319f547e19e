import type { z } from "zod";
import type { Duty } from "./agents.ts";
import type { Phase, PhaseSchema, Placed, Qa, ResolvedPipeline, Review } from "./schema.ts";

/** An agent that may be asked in a phase. */
export interface Member {
  name: string;
  duty: Duty;
  /** What the member does, for the plan. */
  label: string;
  /** The phase's key that names it, if it is not `agent`. */
  key?: string;
  /** Asked only when needed: to answer a question or fix a finding. */
  onDemand?: true;
  /** Which model it is asked on, unless it has its own; default `primary`. */
  on?: "primary" | "review" | "fast";
}

/** An agent that approved the work, and reviews again when a later phase changes it. */
export interface Approver extends Qa {
  duty: "review" | "qa";
  on?: Member["on"];
}

/** What is known about a kind of phase before anything runs. `P` is such a phase as the file has it. */
export interface DeclaredKind<P extends Phase = Phase> {
  name: string;
  /** A key called `agent`, or ending in `Agent`, names an agent; `reviews` and `qa` are checked as review loops. */
  schema: PhaseSchema;
  /** The default phase: fills in what a phase without an agent leaves out. */
  standard?: Readonly<Record<string, unknown>>;
  /** A kind that must come before this one. */
  needs?: string;
  /** The kinds that use this one's result: if a pipeline has any of them, one must come after it. */
  usedBy?: readonly string[];
  members(phase: P): Member[];
  /** The agents that approve the project's state in this phase. */
  approvers?(phase: P): Approver[];
  /** The most agent calls, not counting retries; `approvers` are those of the earlier phases. */
  mostCalls(phase: P, given: { maxRetries: number; approvers: readonly Approver[] }): number;
  /** `mostCalls` counts the calls of a single task. */
  perTask?: boolean;
  /** The agents whose models `differentReviewModel` compares; without this, it compares the two models of the file. */
  compares?(phase: Placed<P>, pipeline: ResolvedPipeline): { builder: string | undefined; reviewer: string };
}

export function kindOf<K extends DeclaredKind>(kinds: readonly K[], { phase }: Phase): K {
  const kind = kinds.find(({ name }) => name === phase);
  if (!kind) throw new Error(`"${phase}" is not among the kinds of phases`);
  return kind;
}

/** The last phase of a kind before another one, or the first after it. */
export function phaseNextTo<S extends PhaseSchema>(
  { pipeline }: Pick<ResolvedPipeline, "pipeline">,
  { id }: Pick<Placed, "id">,
  where: "before" | "after",
  kind: { name: string; schema: S },
): Placed<z.infer<S>> | undefined {
  const at = pipeline.findIndex((phase) => phase.id === id);
  const there = where === "before" ? pipeline.slice(0, at).reverse() : pipeline.slice(at + 1);
  return there.find((phase): phase is Placed<z.infer<S>> => phase.phase === kind.name);
}

/** Adds the approvers of one more phase, without asking anybody twice. */
export function withApprovers(known: readonly Approver[], more: readonly Approver[] = []): Approver[] {
  const same = (a: Approver, b: Approver) => a.agent === b.agent && a.duty === b.duty && a.on === b.on;
  return [...known, ...more.filter((each) => !known.some((other) => same(each, other)))];
}

/** The members that review, and those who answer their questions. */
export function reviewMembers(reviews: readonly Review[]): Member[] {
  return reviews.flatMap((review) => [
    { name: review.agent, duty: "review", label: `reviews, ${revisions(review)}` },
    ...clarifier(review.clarificationAgent, review.agent),
  ]);
}

export function clarifier(agent: string | undefined, asker: string): Member[] {
  return agent ? [{ name: agent, duty: "plan", label: `answers ${asker}`, onDemand: true }] : [];
}

/** How often a reviewer may send the work back, and the keyword that ends it. */
export function revisions({ maxIterations, approvalKeyword }: Pick<Qa, "maxIterations" | "approvalKeyword">): string {
  return `at most ${maxIterations} revisions, "${approvalKeyword}"`;
}
