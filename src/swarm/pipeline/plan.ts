import { toolsFor } from "./agents.ts";
import type { LoadedPipeline } from "./file.ts";
import { type Approver, type DeclaredKind, kindOf, type Member, withApprovers } from "./kind.ts";
import { MAX_TASKS } from "./limits.ts";
import { modelOn } from "./named-models.ts";

export interface PlannedAgent {
  name: string;
  duty: string;
  model: string;
  tools: string[];
  path: string;
}

export interface PlannedPhase {
  phase: string;
  condition: string | null;
  agents: PlannedAgent[];
  /** The most agent calls of the phase; with `perTask`, for one task. */
  maxCalls: number;
  /** The agent calls if everybody approves at once; 0 for a phase that is usually skipped. */
  usualCalls: number;
  perTask: boolean;
}

/** What a pipeline will do, and the most it can cost. */
export interface Plan {
  file: string;
  primaryModel: string;
  reviewModel: string;
  fastModel: string | null;
  concurrency: number;
  checks: string[] | null;
  phases: PlannedPhase[];
  /** The most agent calls with this many tasks, before retries. */
  maxCalls: { tasks: number; calls: number }[];
  /** Every call may be tried this many times. */
  triesPerCall: number;
  notes: string[];
}

/** Resolves a pipeline: which agent does what, on which model, with which tools, and the most calls it can cost. */
export function resolvePlan(loaded: LoadedPipeline, kinds: readonly DeclaredKind[], maxRetries: number): Plan {
  const { pipeline, agents } = loaded;
  const planned = ({ name, duty, label, on }: Member): PlannedAgent => {
    const agent = agents.get(name);
    return {
      name,
      duty: label,
      model: agent?.model ?? modelOn(pipeline, on),
      tools: agent ? toolsFor(agent, duty) : [],
      path: agent?.path ?? "",
    };
  };
  let approvers: Approver[] = [];
  const phases = pipeline.pipeline.map((phase): PlannedPhase => {
    const kind = kindOf(kinds, phase);
    const maxCalls = kind.mostCalls(phase, { maxRetries, approvers });
    approvers = withApprovers(approvers, kind.approvers?.(phase));
    const members = kind.members(phase);
    return {
      phase: phase.id,
      condition: phase.condition ?? null,
      agents: members.map(planned),
      maxCalls,
      usualCalls: phase.condition === "hasFrontendTasks" ? 0 : members.filter(({ onDemand }) => !onDemand).length,
      perTask: kind.perTask ?? false,
    };
  });
  const callsOf = (perTask: boolean) =>
    phases.filter((phase) => phase.perTask === perTask).reduce((sum, { maxCalls }) => sum + maxCalls, 0);
  return {
    file: loaded.path,
    primaryModel: pipeline.primaryModel,
    reviewModel: pipeline.reviewModel,
    fastModel: pipeline.fastModel ?? null,
    concurrency: pipeline.concurrency,
    checks: pipeline.checks ?? null,
    phases,
    maxCalls: [1, 3, 8, MAX_TASKS].map((tasks) => ({ tasks, calls: callsOf(false) + callsOf(true) * tasks })),
    triesPerCall: 1 + maxRetries,
    notes: loaded.notes,
  };
}

/** How many calls a run will make, in a line for the person who starts it. */
export function formatCallEstimate({ phases, maxCalls, triesPerCall }: Plan): string {
  const usual = (perTask: boolean) =>
    phases.filter((phase) => phase.perTask === perTask).reduce((sum, { usualCalls }) => sum + usualCalls, 0);
  const [one, three] = maxCalls;
  const tries = triesPerCall > 1 ? `, each tried up to ${triesPerCall} times` : "";
  const each = usual(true) > 0 ? ` and ${usual(true)} for each further task` : "";
  return `Agent calls: usually ${usual(false) + usual(true)}${each}; at most ${one?.calls} with one task, ${three?.calls} with ${three?.tasks}${tries}.`;
}
