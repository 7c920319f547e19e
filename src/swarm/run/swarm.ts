import { ExitCode } from "../../lib/errors.ts";
import type { Run, RunSummary } from "../../protocol/runs.ts";
import type { Plan } from "../pipeline/plan.ts";
import type { SwarmDeps } from "./deps.ts";
import { createInspect, type Inspect } from "./inspect.ts";
import { createLives, type RunHandle } from "./lives.ts";
import { createPipelines, type PipelineOf } from "./pipelines.ts";
import type { PlanningInput, PlanningResult } from "./planning.ts";
import { createRunRecords } from "./records.ts";
import { createStart, type ResumeInput, type RunInput } from "./start.ts";

/** Pipelines, and the runs of them. */
export interface Swarm extends Inspect {
  /** Checks a pipeline and resolves it; throws one usage error with everything that is wrong. */
  validate(of: PipelineOf): Promise<Plan>;
  /** Has the pm ask its questions and an engineer analyse the answers, and writes plan.md. */
  plan(input: PlanningInput): Promise<PlanningResult>;
  /** Begins a run. Refuses if a person named a model that is not there. */
  start(input: RunInput): Promise<RunHandle>;
  /** Goes on with a run that was interrupted, cancelled or has failed; what is not given is as it was. */
  resume(id: string, given?: ResumeInput): Promise<RunHandle>;
  cancel(id: string): Run;
  list(options?: { limit?: number; before?: string }): RunSummary[];
  show(id: string): Run | undefined;
  /** The ids of the runs that somebody works on. */
  running(): string[];
  /** The interrupted runs, among the latest, that nobody watched. */
  orphans(limit: number): Run[];
  /** Stops every run of this process, to be resumed later, and waits until everything is cleaned up. */
  close(): Promise<void>;
}

/** The exit code that tells how a run ended. */
export function exitCodeOf(run: Pick<Run, "status" | "outcome">): ExitCode {
  if (run.outcome === "approved") return ExitCode.done;
  if (run.outcome === "unapproved" || run.outcome === "unchanged") return ExitCode.unapproved;
  return run.status === "cancelled" || run.status === "interrupted" ? ExitCode.interrupted : ExitCode.failed;
}

export function createSwarm(deps: SwarmDeps): Swarm {
  const { store, engine, emit, bind, log, env = process.env, now = () => new Date() } = deps;
  const records = createRunRecords({ store, emit, log, now });
  const pipelines = createPipelines({ kinds: deps.kinds, shipped: deps.shipped, dataFolder: deps.dataFolder });
  const lives = createLives({ ...deps, records, kinds: pipelines.kinds, env, now });
  const { plan, start, resume } = createStart({
    ...{ engine, bind, records, lives, pipelines, now, env },
    git: deps.git,
    spending: deps.spending,
  });
  const { list, show, running, orphans } = records;
  return {
    ...createInspect({ records, git: deps.git }),
    validate: pipelines.validate,
    plan,
    start,
    resume,
    cancel: lives.cancel,
    list,
    show,
    running,
    orphans,
    close: lives.close,
  };
}
