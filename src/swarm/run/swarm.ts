import { join } from "node:path";
import { ExitCode } from "../../lib/errors.ts";
import type { PlanningResult } from "../../protocol/plans.ts";
import type { Run, RunSummary } from "../../protocol/runs.ts";
import type { Round } from "../pipeline/inputs.ts";
import type { Plan } from "../pipeline/plan.ts";
import { reopenedKeys } from "../steps/keys.ts";
import { readResult } from "../steps/stored.ts";
import { type Clean, createCleaner } from "./clean.ts";
import type { SwarmDeps } from "./deps.ts";
import { isRefused } from "./execute.ts";
import { createInspect, type Inspect } from "./inspect.ts";
import { createPipelines, type PipelineOf } from "./pipelines.ts";
import type { PlanningInput } from "./planning.ts";
import { createRunRecords } from "./records.ts";
import { RoundEnd } from "./round.ts";
import { createRunLauncher, type RunHandle } from "./run-launcher.ts";
import { createStart, type ResumeInput, type RunInput } from "./start.ts";

/** Pipelines, and their runs. */
export interface Swarm extends Inspect {
  /** Checks a pipeline and resolves it; throws one usage error with everything that is wrong. */
  validate(of: PipelineOf): Promise<Plan>;
  /** The pm asks its questions, an engineer analyses the answers, and the plan is written to plan.md. */
  plan(input: PlanningInput): Promise<PlanningResult>;
  /** Begins a run. Refuses if a person named a model that does not exist. */
  start(input: RunInput): Promise<RunHandle>;
  /** Resumes a run that was interrupted or cancelled or has failed; whatever is not given stays as it was. */
  resume(id: string, given?: ResumeInput): Promise<RunHandle>;
  /** Continues an ended run, on its branch: the engineer of its stream is asked once more. */
  reopen(id: string, round: Omit<Round, "before">): Promise<RunHandle>;
  /** The result of such a round; undefined until there is one. */
  roundEnd(id: string, number: number): RoundEnd | undefined;
  cancel(id: string): Run;
  /** Stops a run so that it can be resumed, and waits until it has stopped. */
  interrupt(id: string): Promise<Run>;
  /** Resolves when a run has ended and its clean-up is done. */
  settled(id: string): Promise<void>;
  list(options?: { limit?: number; before?: string }): RunSummary[];
  show(id: string): Run | undefined;
  /** A known run without its steps. */
  summary(id: string): RunSummary;
  /** The ids of the runs in progress. */
  running(): string[];
  /** The interrupted runs, among the latest, that nobody watched. */
  orphans(limit: number): Run[];
  /** Stops every run, to be resumed later, and waits until everything is cleaned up. */
  close(): Promise<void>;
  /** Removes what ended runs left. */
  clean: Clean;
}

/** The exit code for how a run ended. */
export function exitCodeOf(run: Pick<Run, "status" | "outcome" | "reason">): ExitCode {
  if (isRefused(run)) return ExitCode.usage;
  if (run.outcome === "approved") return ExitCode.done;
  if (run.outcome === "unapproved" || run.outcome === "untested" || run.outcome === "unchanged") return ExitCode.unapproved;
  return run.status === "cancelled" || run.status === "interrupted" ? ExitCode.interrupted : ExitCode.failed;
}

export function createSwarm(deps: SwarmDeps): Swarm {
  const { store, engine, emit, bind, log, env = process.env, now = () => new Date() } = deps;
  const atWork = new Set<string>();
  const records = createRunRecords({ store, emit, log, now, isAtWork: (id) => atWork.has(id) });
  const pipelines = createPipelines({ kinds: deps.kinds, shipped: deps.shipped, dataFolder: deps.dataFolder });
  const launcher = createRunLauncher({ ...deps, records, atWork, kinds: pipelines.kinds, env, now });
  const { plan, start, resume, reopen } = createStart({
    ...{ engine, bind, records, launcher, pipelines, now, env },
    ...{ git: deps.git, spending: deps.spending, checks: deps },
  });
  const { list, show, summary, running, orphans } = records;
  return {
    ...createInspect({ records, git: deps.git }),
    validate: pipelines.validate,
    plan,
    start,
    resume,
    reopen,
    roundEnd(id, number) {
      const step = records.runs.step(id, reopenedKeys(number).end);
      return step && readResult(RoundEnd, step);
    },
    cancel: launcher.cancel,
    interrupt: launcher.interrupt,
    settled: launcher.settled,
    list,
    show,
    summary,
    running,
    orphans,
    close: launcher.close,
    clean: createCleaner({
      ...{ records, git: deps.git, runsFolder: deps.runsFolder },
      sessionsFolder: deps.sessionsFolder ?? join(deps.runsFolder, "sessions"),
    }),
  };
}
