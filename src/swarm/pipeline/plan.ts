import { type Duty, toolsFor } from "./agents.ts";
import type { LoadedPipeline } from "./file.ts";
import { MAX_CLARIFICATIONS, MAX_CONFLICTS, MAX_MERGE_FIXES, MAX_SETTLINGS, MAX_TASKS } from "./limits.ts";
import type { Phase } from "./schema.ts";

export interface PlannedAgent {
  name: string;
  duty: string;
  model: string;
  tools: string[];
  path: string;
}

export interface PlannedPhase {
  phase: Phase["phase"];
  condition: string | null;
  agents: PlannedAgent[];
  /** The most agent calls of the phase; of `implement`, of one task. */
  maxCalls: number;
}

/** What a pipeline will do, and the most it can cost. */
export interface Plan {
  file: string;
  primaryModel: string;
  reviewModel: string;
  concurrency: number;
  checks: string[] | null;
  phases: PlannedPhase[];
  /** The most agent calls with this many tasks, before retries. */
  maxCalls: { tasks: number; calls: number }[];
  /** Every call may be tried this many times. */
  triesPerCall: number;
  notes: string[];
}

/** Resolves a pipeline: who does what on which model with which tools, and the most calls it can cost. */
export function resolvePlan(loaded: LoadedPipeline, maxRetries: number): Plan {
  const { pipeline, agents } = loaded;
  const phases = pipeline.pipeline.map((phase): PlannedPhase => {
    const members = membersOf(phase).map(({ name, duty, label, review }): PlannedAgent => {
      const agent = agents.get(name);
      return {
        name,
        duty: label,
        model: agent?.model ?? (review ? pipeline.reviewModel : pipeline.primaryModel),
        tools: agent ? toolsFor(agent, duty) : [],
        path: agent?.path ?? "",
      };
    });
    return {
      phase: phase.phase,
      condition: ("condition" in phase ? phase.condition : undefined) ?? null,
      agents: members,
      maxCalls: callsOf(phase, maxRetries, pipeline.pipeline),
    };
  });
  const once = phases.filter((phase) => phase.phase !== "implement").reduce((sum, phase) => sum + phase.maxCalls, 0);
  const each = phases.find((phase) => phase.phase === "implement")?.maxCalls ?? 0;
  return {
    file: loaded.path,
    primaryModel: pipeline.primaryModel,
    reviewModel: pipeline.reviewModel,
    concurrency: pipeline.concurrency,
    checks: pipeline.checks ?? null,
    phases,
    maxCalls: [1, 3, 8, MAX_TASKS].map((tasks) => ({ tasks, calls: once + each * tasks })),
    triesPerCall: 1 + maxRetries,
    notes: loaded.notes,
  };
}

interface Member {
  name: string;
  duty: Duty;
  label: string;
  /** Asked on the review model, unless it has one of its own. */
  review?: boolean;
}

/** Everybody who may be asked in a phase. */
export function membersOf(phase: Phase): Member[] {
  const reviewers = ("reviews" in phase ? phase.reviews : []).flatMap((review): Member[] => [
    {
      name: review.agent,
      duty: "review",
      label: `reviews, at most ${review.maxIterations} revisions, "${review.approvalKeyword}"`,
    },
    ...(review.clarificationAgent
      ? [{ name: review.clarificationAgent, duty: "plan" as const, label: `answers ${review.agent}` }]
      : []),
  ]);
  const asked: Member[] =
    "clarificationAgent" in phase && phase.clarificationAgent
      ? [{ name: phase.clarificationAgent, duty: "plan", label: `answers ${phase.agent}` }]
      : [];
  if (phase.phase === "cross-model-review") {
    return [
      {
        name: phase.agent,
        duty: "review",
        label: `reviews, at most ${phase.maxIterations} revisions, "${phase.approvalKeyword}"`,
        review: true,
      },
      { name: phase.fixAgent, duty: "build", label: "fixes" },
    ];
  }
  if (phase.phase === "implement") {
    const qa: Member[] = phase.qa
      ? [
          {
            name: phase.qa.agent,
            duty: "qa",
            label: `tests, at most ${phase.qa.maxIterations} revisions, "${phase.qa.approvalKeyword}"`,
          },
        ]
      : [];
    return [
      { name: phase.agent, duty: "build", label: phase.parallel ? "implements, streams side by side" : "implements, in order" },
      ...asked,
      ...reviewers,
      ...qa,
    ];
  }
  return [
    { name: phase.agent, duty: "plan", label: { spec: "writes", decompose: "splits", design: "designs" }[phase.phase] },
    ...asked,
    ...reviewers,
  ];
}

/** A revision by one reviewer voids the approvals of all: every reviewer may look once at each state of the work. */
function callsOf(phase: Phase, maxRetries: number, all: readonly Phase[]): number {
  if (phase.phase === "decompose") return 1 + maxRetries;
  if (phase.phase === "cross-model-review") {
    const built = all.find((each) => each.phase === "implement");
    const reviewers = [phase, ...(built?.reviews ?? []), ...(built?.qa ? [built.qa] : [])];
    const fixes = reviewers.reduce((sum, reviewer) => sum + reviewer.maxIterations, 0);
    // Those who approved before are asked only of what a fix has changed.
    return 1 + fixes + (reviewers.length - 1) * fixes + fixes;
  }
  const reviewers = [...phase.reviews, ...(phase.phase === "implement" && phase.qa ? [phase.qa] : [])];
  const implement = phase.phase === "implement";
  const mergeCalls = implement ? MAX_CONFLICTS * MAX_SETTLINGS + MAX_MERGE_FIXES : 0;
  const mergeStates = implement ? MAX_CONFLICTS + MAX_MERGE_FIXES : 0;
  const revisions = reviewers.reduce((sum, reviewer) => sum + reviewer.maxIterations, 0);
  const asking = "clarificationAgent" in phase && phase.clarificationAgent !== undefined ? 1 + 2 * MAX_CLARIFICATIONS : 1;
  const answered = phase.reviews
    .filter((review) => review.clarificationAgent)
    .reduce((sum, review) => sum + review.maxIterations, 0);
  return (1 + revisions + mergeCalls) * asking + answered + reviewers.length * (1 + revisions + mergeStates);
}
