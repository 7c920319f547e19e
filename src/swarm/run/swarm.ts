import { join, resolve } from "node:path";
import { z } from "zod";
import { conflict, ExitCode, messageOf, missing, unavailable, usageError } from "../../lib/errors.ts";
import { newId } from "../../lib/ids.ts";
import { packageRoot } from "../../lib/paths.ts";
import { type EventData, newsOf } from "../../protocol/events.ts";
import type { Run, RunModel, RunSummary } from "../../protocol/runs.ts";
import { whenFree } from "../../store/open.ts";
import { readJson } from "../../store/read-json.ts";
import { openRuns, type RunRow } from "../../store/runs.ts";
import { findPipelineFile, type LoadedPipeline, loadPipeline } from "../pipeline/file.ts";
import { fingerprint, Inputs, kept, whatChanged } from "../pipeline/inputs.ts";
import { namedModels } from "../pipeline/named-models.ts";
import { type Plan, resolvePlan } from "../pipeline/plan.ts";
import type { RunSettings } from "../pipeline/settings.ts";
import { applyTo, branchToApplyTo } from "./apply.ts";
import { checkDocDir, openProject } from "./checkout.ts";
import type { RunContext, TellRun } from "./context.ts";
import type { SwarmDeps } from "./deps.ts";
import { summaryOf, writeStepSummary } from "./documents.ts";
import { type Ending, execute } from "./execute.ts";
import { RunStopped } from "./journal.ts";
import { resolveModels } from "./models.ts";
import { openRun, type RunLife } from "./open.ts";
import { type PlanningInput, type PlanningResult, runPlanning } from "./planning.ts";
import { blamedFor, ownSessions } from "./resume.ts";
import { statusOf, summarizeRun, viewRun } from "./view.ts";
import { putAway } from "./workplace.ts";

export interface RunInput {
  projectPath: string;
  issue: string;
  settings: RunSettings;
  /** A pipeline file other than the project's own. */
  pipelineFile?: string | undefined;
  /** Merge the result into the checkout when everything is approved. */
  apply?: boolean | undefined;
  /** Let other models serve for those that a person named and that are not there. */
  standIns?: boolean | undefined;
  /** What a squad has decided for this project. */
  decisions?: string[] | undefined;
  squad?: string | undefined;
  conversation?: string | undefined;
  /** Nobody stands by: whoever takes up `orphans` goes on with it after a crash. */
  unattended?: boolean | undefined;
}

export interface ResumeInput {
  settings?: Partial<RunSettings>;
  issue?: string | undefined;
  unattended?: boolean | undefined;
  standIns?: boolean | undefined;
}

export interface RunHandle {
  id: string;
  /** The run as it ended. Never rejects. */
  finished: Promise<Run>;
  cancel(): void;
}

/** Pipelines, and the runs of them. */
export interface Swarm {
  /** Checks a pipeline and resolves it; throws one usage error with everything that is wrong. */
  validate(input: { projectPath: string; settings: RunSettings; pipelineFile?: string | undefined }): Plan;
  /** The questions of the pm, the analysis, and plan.md. */
  plan(input: PlanningInput): Promise<PlanningResult>;
  /** Begins a run, once it is known that the models are there that a person named. */
  start(input: RunInput): Promise<RunHandle>;
  /** Goes on with a run that was interrupted, cancelled or has failed; what is not given is as it was. */
  resume(id: string, given?: ResumeInput): Promise<RunHandle>;
  cancel(id: string): Run;
  list(options?: { limit?: number; before?: string }): RunSummary[];
  show(id: string): Run | undefined;
  /** The ids of the runs that somebody works on. */
  running(): string[];
  /** The interrupted runs among the latest that were worked on with nobody standing by. */
  orphans(limit: number): Run[];
  /** Stops every run of this process, to be resumed later, and waits until all is put away. */
  close(): Promise<void>;
}

/** The exit code that tells how a run ended. */
export function exitCodeOf(run: Pick<Run, "status" | "outcome">): ExitCode {
  if (run.outcome === "approved") return ExitCode.done;
  if (run.outcome === "unapproved") return ExitCode.unapproved;
  return run.status === "cancelled" || run.status === "interrupted" ? ExitCode.interrupted : ExitCode.failed;
}

const BEAT_MS = 1_000;

export function createSwarm(parts: SwarmDeps): Swarm {
  const { store, engine, emit, bind, log, env = process.env, now = () => new Date() } = parts;
  const shipped = parts.shipped ?? {
    agents: join(packageRoot, "agents"),
    pipeline: join(packageRoot, "pipelines", "default.yaml"),
  };
  const runs = openRuns(store);
  const active = new Map<string, { stop: AbortController; finished: Promise<Run> }>();
  const chores = new Set<Promise<void>>();
  let closings = 0;

  function load(projectPath: string, settings: RunSettings, file: string | undefined): LoadedPipeline {
    const root = openProject(projectPath);
    const places = { root, agentsDir: settings.agentsDir, shipped: shipped.agents };
    return loadPipeline(file === undefined ? findPipelineFile(root, shipped.pipeline) : resolve(root, file), places, settings);
  }

  /** What serves for the names of a pipeline; refuses what a person named and is not there. */
  async function modelsFor(loaded: LoadedPipeline, projectPath: string, standIns: boolean): Promise<RunModel[]> {
    const before = closings;
    const models = await resolveModels(engine, namedModels(loaded, { root: openProject(projectPath), shipped }), standIns);
    if (closings !== before) throw unavailable("IO is being stopped: nothing was started. Ask again when it is back.");
    return models;
  }

  const view = (id: string): Run => viewRun(runs, known(id), now());

  function known(id: string): RunRow {
    const row = runs.get(id);
    if (!row) throw missing(`there is no run "${id}". List the runs to see which there are.`);
    return row;
  }

  /** A run that can be taken up now. */
  function resumable(id: string): RunRow {
    const row = known(id);
    const status = statusOf(row, now());
    if (active.has(id) || status === "running")
      throw conflict(`run ${id} is still running${row.pid ? ` in process ${row.pid}` : ""}.`);
    if (status === "done") throw conflict(nothingToResume(row));
    return row;
  }

  const teller =
    ({ id, conversation }: RunRow): TellRun =>
    (type, data) =>
      emit(newsOf(type, { runId: id, ...data } as EventData<typeof type>, conversation));

  /** `stale`: sessions of an earlier life whose questions are asked afresh. */
  function launch(row: RunRow, loaded: LoadedPipeline, inputs: Inputs, settings: RunSettings, stale: string[] = []): RunHandle {
    const { id } = row;
    const stop = new AbortController();
    runs.claim(id, process.pid, now().toISOString());
    const beat = setInterval(() => {
      try {
        runs.beat(id, now().toISOString());
        if (runs.cancelAsked(id)) stop.abort();
      } catch (error) {
        log.warn("a run's sign of life could not be written", { run: id, error: messageOf(error) });
      }
    }, BEAT_MS);
    const tell = teller(row);
    tell("run.started", { ...summarizeRun(runs, known(id), now()) });
    const finished = forget(stale)
      .then(() => work({ row: known(id), loaded, inputs, settings, signal: stop.signal, tell }))
      .catch((error: unknown) => {
        if (!(error instanceof RunStopped) && !stop.signal.aborted) log.error("a run ended by a fault", { run: id, error });
        return { error };
      })
      .then((ended) => whenFree(() => conclude(id, ended, stop.signal, tell)))
      .finally(() => {
        clearInterval(beat);
        active.delete(id);
      });
    active.set(id, { stop, finished });
    return {
      id,
      finished,
      cancel: () => {
        runs.askToCancel(id);
        stop.abort();
      },
    };
  }

  async function work(life: RunLife): Promise<Ending> {
    const { row, inputs, settings } = life;
    const { id } = row;
    const context = await openRun({ ...parts, runs, env, now }, life);
    const { journal, workplace, documents } = context;
    const target = inputs.apply ? await branchToApplyTo(context) : null;
    const ending = await execute(context, () => view(id));
    if (workplace.kind === "branch") runs.setTree(id, { branch: workplace.branch, base: workplace.base, tree: ending.tree });
    else runs.setTree(id, { branch: null, base: null, tree: ending.tree });
    if (inputs.apply && (await applyTo(target, context, ending))) runs.setApplied(id);
    const ended = {
      ...view(id),
      status: ending.status,
      outcome: ending.outcome,
      reason: ending.reason,
    };
    const summary = summaryOf(ended);
    documents.write(settings.summaryFileName, "Swarm summary", summary);
    await journal.step(z.boolean(), { key: "run/summary", kind: "git", phase: "run" }, ending, async () => {
      writeStepSummary(env.GITHUB_STEP_SUMMARY, summary);
      return { value: true };
    });
    if (ending.status === "done") chore(forget(context.caller.spent()).then(() => putAway(workplace, ended)));
    return ending;
  }

  function conclude(id: string, ended: Ending | { error: unknown }, signal: AbortSignal, tell: RunContext["tell"]): Run {
    const at = now().toISOString();
    if ("outcome" in ended) {
      runs.finish(id, {
        status: ended.status,
        outcome: ended.outcome,
        reason: ended.reason,
        now: at,
      });
    } else if (!signal.aborted) {
      runs.finish(id, { status: "failed", outcome: "failed", reason: messageOf(ended.error), now: at });
    } else if (runs.cancelAsked(id)) {
      runs.finish(id, { status: "cancelled", outcome: "cancelled", reason: "it was cancelled", now: at });
    } else {
      runs.release(id);
    }
    const run = view(id);
    if (run.status !== "interrupted") tell("run.finished", { ...run });
    return run;
  }

  async function forget(sessions: readonly string[]): Promise<void> {
    for (const session of sessions) await engine.deleteSession(session);
  }

  function chore(promise: Promise<void>): void {
    const quiet: Promise<void> = promise
      .catch((error: unknown) => log.warn("what a run left behind could not all be put away", { error: messageOf(error) }))
      .finally(() => chores.delete(quiet));
    chores.add(quiet);
  }

  return {
    validate: ({ projectPath, settings, pipelineFile }) =>
      resolvePlan(load(projectPath, settings, pipelineFile), settings.maxRetries),
    async plan(input) {
      const { settings } = input;
      const projectPath = openProject(input.projectPath);
      checkDocDir(projectPath, settings.docDir);
      const loaded = load(projectPath, settings, undefined);
      await modelsFor(loaded, projectPath, input.standIns ?? false);
      const name = loaded.pipeline.primaryModel;
      const model = { name, ...(await engine.serving(name)) };
      return runPlanning({ engine, bind, model, now }, { ...input, projectPath });
    },
    async start({
      projectPath,
      issue,
      settings,
      pipelineFile,
      apply = false,
      standIns = false,
      unattended = false,
      decisions = [],
      squad,
      conversation,
    }) {
      if (issue.trim() === "") throw usageError("there is no request: say what is to be built");
      const root = openProject(projectPath);
      checkDocDir(root, settings.docDir);
      const loaded = load(root, settings, pipelineFile);
      const inputs: Inputs = {
        ...fingerprint(loaded, issue),
        pipelineFile: pipelineFile ?? null,
        apply,
        standIns,
        models: await modelsFor(loaded, root, standIns),
        unattended,
        decisions,
        settings: kept(settings),
      };
      const id = newId("r", now().getTime());
      runs.create({
        id,
        projectPath: root,
        issue,
        inputs: JSON.stringify(inputs),
        now: now().toISOString(),
        ...(conversation !== undefined && { conversation }),
        ...(squad !== undefined && { squad }),
      });
      return launch(known(id), loaded, inputs, settings);
    },
    async resume(id, given = {}) {
      const row = resumable(id);
      const then = readJson(Inputs, row.inputs);
      if (!then || runs.hasForeignSteps(id))
        throw conflict(`run ${id} was written by another version of IO, which this one cannot go on with. Start a new run.`);
      const standIns = given.standIns || then.standIns;
      const { primaryModel, reviewModel, ...rest } = then.settings;
      const settings: RunSettings = { ...rest, primaryModel, reviewModel, ...given.settings, issue: row.issue };
      const loaded = load(row.project_path, settings, then.pipelineFile ?? undefined);
      const changed = whatChanged(then, fingerprint(loaded, given.issue ?? row.issue), settings);
      if (changed.length > 0) {
        throw conflict(`run ${id} cannot be resumed: ${changed.join("; ")}. Put it back as it was, or start a new run.`);
      }
      const models = await modelsFor(loaded, row.project_path, standIns);
      // While the models were looked for, somebody else may have taken it up.
      const { status } = resumable(id);
      const inputs: Inputs = { ...then, unattended: given.unattended ?? false, standIns, models };
      const blamed = status === "failed" ? blamedFor(runs.steps(id), loaded.pipeline) : [];
      runs.setInputs(id, JSON.stringify(inputs));
      runs.forget(
        id,
        blamed.map((step) => step.key),
      );
      return launch(row, loaded, inputs, settings, ownSessions(id, blamed));
    },
    cancel(id) {
      const row = known(id);
      const here = active.get(id);
      const status = statusOf(row, now());
      if (here || status === "running") runs.askToCancel(id);
      else if (status === "interrupted") {
        runs.finish(id, { status: "cancelled", outcome: "cancelled", reason: "it was cancelled", now: now().toISOString() });
        teller(row)("run.finished", { ...view(id) });
      }
      here?.stop.abort();
      return view(id);
    },
    list: ({ limit = 50, before } = {}) => runs.list(limit, before).map((row) => summarizeRun(runs, row, now())),
    show(id) {
      const row = runs.get(id);
      return row && viewRun(runs, row, now());
    },
    running: () =>
      runs
        .unfinished()
        .filter((row) => statusOf(row, now()) === "running")
        .map(({ id }) => id),
    orphans: (limit) =>
      runs
        .unfinished()
        .slice(0, limit)
        .filter((row) => statusOf(row, now()) === "interrupted" && readJson(Inputs, row.inputs)?.unattended)
        .map((row) => viewRun(runs, row, now())),
    async close() {
      closings += 1;
      const all = [...active.values()];
      for (const { stop } of all) stop.abort();
      await Promise.all(all.map(({ finished }) => finished));
      await Promise.all(chores);
    },
  };
}

function nothingToResume({ id, outcome, reason, branch }: RunRow): string {
  const ended = `run ${id} has ended (${outcome}${reason === null ? "" : `: ${reason}`}): every phase came to its end, so there is nothing to resume.`;
  if (outcome === "approved") return `${ended} Start a new run for more.`;
  return `${ended} Start a new run for what stands against it${branch === null ? "" : `; what was done is on ${branch}, merge that first to build on it`}.`;
}
