import { setImmediate } from "node:timers/promises";
import type { Engine } from "../../engine/port.ts";
import { companionName } from "../../git/companion-name.ts";
import { conflict, usageError } from "../../lib/errors.ts";
import { newId } from "../../lib/ids.ts";
import { findConventions } from "../../project/conventions.ts";
import type { PlanningResult } from "../../protocol/plans.ts";
import type { RunModel } from "../../protocol/runs.ts";
import type { Spending } from "../../protocol/usage.ts";
import { readJson } from "../../store/read-json.ts";
import type { RunRow } from "../../store/runs.ts";
import type { Bind } from "../agents/agent-sessions.ts";
import { resolveModels } from "../agents/models.ts";
import { type CheckFinders, plannedChecks } from "../checks/planned-checks.ts";
import { PLAN, PLAN_DRAFT } from "../context/documents.ts";
import type { LoadedPipeline } from "../pipeline/file.ts";
import { fingerprint, Inputs, type Round, storedSettings, whatChanged } from "../pipeline/inputs.ts";
import { formatCallEstimate, resolvePlan } from "../pipeline/plan.ts";
import type { RunSettings } from "../pipeline/settings.ts";
import { runKeys } from "../steps/keys.ts";
import { unreadable } from "../steps/stored.ts";
import { checkDocDir } from "./checkout.ts";
import { openOtherProjects } from "./other-projects.ts";
import type { Pipelines } from "./pipelines.ts";
import { type PlanningInput, runPlanning } from "./planning.ts";
import { inspectProject, type PreflightDeps, preflight, preflightPlan } from "./preflight.ts";
import type { RunRecords } from "./records.ts";
import { ownSessions, stepsToRepeat } from "./resume.ts";
import type { createRunLauncher, RunHandle } from "./run-launcher.ts";
import { placeOf } from "./workplace.ts";

export interface RunInput {
  /** Set by callers that need the id before the run exists. */
  id?: string | undefined;
  projectPath: string;
  /** Other projects to change in the same run. */
  with?: readonly string[] | undefined;
  /** The commit to begin from, if not the checkout's. */
  base?: string | undefined;
  issue: string;
  settings: RunSettings;
  /** A pipeline file other than the project's own. */
  pipelineFile?: string | undefined;
  /** Merge the result into the checkout when everything is approved. */
  apply?: boolean | undefined;
  /** Ask no model unless the project's checks can run. */
  requireChecks?: boolean | undefined;
  /** Allow substitutes for missing models that a person named. */
  standIns?: boolean | undefined;
  /** The request is a plan, as `plan` writes it. */
  plan?: boolean | undefined;
  /** What a squad has decided for this project. */
  decisions?: string[] | undefined;
  squad?: string | undefined;
  conversation?: string | undefined;
  /** Work outside git on a folder that is larger than the limit. */
  large?: boolean | undefined;
  /** Receives notes about the project before anything is begun. */
  onNote?: ((text: string) => void) | undefined;
  /** The page of a GitHub job that the summary is added to. */
  stepSummary?: string | undefined;
  /** Nobody watches it: after a crash it is among the `orphans`, which are resumed. */
  unattended?: boolean | undefined;
  /** It may be continued after it has ended. */
  reopenable?: boolean | undefined;
}

export interface ResumeInput {
  settings?: Partial<RunSettings>;
  issue?: string | undefined;
  unattended?: boolean | undefined;
  standIns?: boolean | undefined;
  stepSummary?: string | undefined;
}

export interface StartDeps extends PreflightDeps {
  engine: Pick<Engine, "session" | "deleteSession" | "serving" | "models">;
  bind: Bind;
  records: RunRecords;
  launcher: ReturnType<typeof createRunLauncher>;
  pipelines: Pipelines;
  spending: Spending | undefined;
  checks: CheckFinders;
  now: () => Date;
}

/** Starts and resumes runs, and the planning before them. */
export function createStart({ engine, bind, records, launcher, pipelines, spending, checks, now, git, env }: StartDeps) {
  const { runs } = records;

  /** Finds the model that serves each name; refuses if a person named one that does not exist. */
  const modelsFor = (loaded: LoadedPipeline, projectPath: string, standIns: boolean): Promise<RunModel[]> =>
    launcher.unlessClosed(resolveModels(engine, pipelines.namedModels(loaded, projectPath), standIns));

  function resumable(id: string): RunRow {
    const row = records.known(id);
    const status = records.status(row);
    if (launcher.isActive(id) || status === "running") throw conflict(`run ${id} is still running.`);
    if (status === "done") throw conflict(nothingToResume(row));
    return row;
  }

  return {
    reopen: createReopen({ records, launcher, pipelines, modelsFor }),
    plan: createPlanning({ engine, bind, pipelines, spending, checks, now, git, modelsFor }),

    async start({
      issue,
      settings,
      pipelineFile,
      apply,
      requireChecks = false,
      standIns = false,
      unattended,
      plan = false,
      reopenable = false,
      decisions,
      large = false,
      onNote,
      stepSummary,
      ...of
    }: RunInput): Promise<RunHandle> {
      if (issue.trim() === "") throw usageError("there is no request: say what is to be built");
      const projectPath = pipelines.open(of.projectPath);
      checkDocDir(projectPath, settings.docDir);
      const id = of.id ?? newId("r", now().getTime());
      const look = inspectProject(git, projectPath, id);
      // Reading the pipeline blocks this thread, so let git start first and work meanwhile.
      await setImmediate();
      const loaded = await pipelines.load({ projectPath, settings, pipelineFile });
      const conventions = findConventions(projectPath);
      conventions.catch(() => undefined);
      const { onBranch, documents } = placeOf(loaded.pipeline.pipeline, pipelines.kinds);
      const written = [...documents, settings.summaryFileName];
      const [{ notes, inspected }, models] = await Promise.all([
        preflight({ git, env }, { projectPath, docDir: settings.docDir, documents: written, onBranch, large }, look),
        modelsFor(loaded, projectPath, standIns),
      ]);
      const { notes: ofOthers, ...others } = await openOtherProjects(
        { git, env, pipelines },
        { runId: id, projectPath, named: of.with ?? [], settings, inspected, onBranch, apply: apply ?? false },
      );
      const calls = formatCallEstimate(resolvePlan(loaded, pipelines.kinds, settings.maxRetries));
      for (const note of [calls, ...notes, ...ofOthers]) onNote?.(note);
      const inputs: Inputs = {
        ...fingerprint(loaded, issue),
        pipelineFile: pipelineFile ?? null,
        apply: apply ?? false,
        requireChecks,
        standIns,
        models,
        unattended: unattended ?? false,
        plan,
        reopenable,
        decisions: decisions ?? [],
        ...others,
        ...(of.base !== undefined && { base: of.base }),
        settings: storedSettings(settings),
      };
      runs.create({
        id,
        projectPath,
        issue,
        inputs: JSON.stringify(inputs),
        now: now().toISOString(),
        ...(of.conversation !== undefined && { conversation: of.conversation }),
        ...(of.squad !== undefined && { squad: of.squad }),
      });
      return launcher.launch({ id, loaded, inputs, settings, inspected, conventions, stepSummary });
    },

    async resume(id: string, given: ResumeInput = {}): Promise<RunHandle> {
      const row = resumable(id);
      const then = readJson(Inputs, row.inputs);
      if (!then || runs.hasForeignSteps(id)) throw conflict(unreadable(`run ${id}`));
      if (runs.steps(id).length > 0 && !launcher.hasFolder(id))
        throw conflict(`run ${id} cannot be resumed: what it worked with was removed (swarm clean). Start a new run.`);
      const standIns = given.standIns || then.standIns;
      const { primaryModel, reviewModel, ...rest } = then.settings;
      const settings: RunSettings = { ...rest, primaryModel, reviewModel, ...given.settings, issue: row.issue };
      const projectPath = row.project_path;
      const loaded = await pipelines.load({ projectPath, settings, pipelineFile: then.pipelineFile ?? undefined });
      const changed = whatChanged(then, fingerprint(loaded, given.issue ?? row.issue), settings);
      if (changed.length > 0) {
        throw conflict(`run ${id} cannot be resumed: ${changed.join("; ")}. Put it back as it was, or start a new run.`);
      }
      const models = await modelsFor(loaded, projectPath, standIns);
      // Somebody else may have resumed it while the models were looked up.
      const { status } = resumable(id);
      const inputs: Inputs = { ...then, unattended: given.unattended ?? false, standIns, models };
      const repeated = status === "failed" ? stepsToRepeat(runs.steps(id), loaded.pipeline, pipelines.kinds) : [];
      runs.setInputs(id, JSON.stringify(inputs));
      runs.forget(
        id,
        repeated.map((step) => step.key),
      );
      return launcher.launch({
        ...{ id, loaded, inputs, settings, stepSummary: given.stepSummary },
        staleSessions: ownSessions(id, repeated),
      });
    },
  };
}

type PlanningDeps = Pick<StartDeps, "engine" | "bind" | "pipelines" | "spending" | "checks" | "now" | "git"> &
  Pick<ReopenDeps, "modelsFor">;

/** The planning before a run. */
function createPlanning({ engine, bind, pipelines, spending, checks, now, git, modelsFor }: PlanningDeps) {
  return async (input: PlanningInput): Promise<PlanningResult> => {
    const { settings } = input;
    const projectPath = pipelines.open(input.projectPath);
    checkDocDir(projectPath, settings.docDir);
    await preflightPlan(git, { projectPath, docDir: settings.docDir, documents: [PLAN, PLAN_DRAFT] });
    const loaded = await pipelines.load({ projectPath, settings });
    await modelsFor(loaded, projectPath, input.standIns ?? false);
    const name = loaded.pipeline.primaryModel;
    const model = { name, ...(await engine.serving(name)) };
    const planned = await runPlanning({ engine, bind, model, spending, now }, { ...input, projectPath });
    return { ...planned, checks: await plannedChecks(projectPath, loaded, checks) };
  };
}

/** Continues an ended run, on its branch. */
function createReopen({ records, launcher, pipelines, modelsFor }: ReopenDeps) {
  const { runs } = records;
  return async (id: string, wanted: Omit<Round, "before">): Promise<RunHandle> => {
    await launcher.settled(id);
    const row = records.known(id);
    const then = readJson(Inputs, row.inputs);
    if (!then || runs.hasForeignSteps(id)) throw conflict(unreadable(`run ${id}`));
    // If a crash interrupted this before the run was in progress again, the round is already in its inputs.
    const before = then.round?.number === wanted.number ? then.round.before : row;
    if (records.status(row) !== "done" || row.branch === null || before.outcome === null)
      throw conflict(`run ${id} has come to no result on a branch, so there is nothing to go on with.`);
    const { primaryModel, reviewModel, ...rest } = then.settings;
    const settings: RunSettings = { ...rest, primaryModel, reviewModel, issue: row.issue };
    const loaded = await pipelines.load({
      projectPath: row.project_path,
      settings,
      pipelineFile: then.pipelineFile ?? undefined,
    });
    const models = await modelsFor(loaded, row.project_path, then.standIns);
    const round = { ...wanted, before: { outcome: before.outcome, reason: before.reason } };
    const inputs: Inputs = { ...then, ...fingerprint(loaded, row.issue), models, round, apply: false, unattended: true };
    runs.setInputs(id, JSON.stringify(inputs));
    // What was installed for the run was removed with its trees.
    const theirs = then.with.map(({ projectPath }, index) => `${runKeys.prepare}/${companionName(projectPath, index + 1)}`);
    runs.forget(id, [runKeys.prepare, ...theirs]);
    return launcher.launch({ id, loaded, inputs, settings });
  };
}

interface ReopenDeps extends Pick<StartDeps, "records" | "launcher" | "pipelines"> {
  modelsFor: (loaded: LoadedPipeline, projectPath: string, standIns: boolean) => Promise<RunModel[]>;
}

function nothingToResume({ id, outcome, reason, branch }: RunRow): string {
  const ended = `run ${id} has ended (${outcome}${reason === null ? "" : `: ${reason}`}): every phase came to its end, so there is nothing to resume.`;
  if (outcome === "approved") return `${ended} Start a new run for more.`;
  return `${ended} Start a new run for what stands against it${branch === null ? "" : `; what was done is on ${branch}, merge that first to build on it`}.`;
}
