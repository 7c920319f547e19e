import { setImmediate } from "node:timers/promises";
import type { Engine } from "../../engine/port.ts";
import { conflict, usageError } from "../../lib/errors.ts";
import { newId } from "../../lib/ids.ts";
import { findConventions } from "../../project/conventions.ts";
import type { RunModel } from "../../protocol/runs.ts";
import type { Spending } from "../../protocol/usage.ts";
import { readJson } from "../../store/read-json.ts";
import type { RunRow } from "../../store/runs.ts";
import type { LoadedPipeline } from "../pipeline/file.ts";
import { fingerprint, Inputs, kept, whatChanged } from "../pipeline/inputs.ts";
import type { RunSettings } from "../pipeline/settings.ts";
import type { Bind } from "./agent-sessions.ts";
import { checkDocDir } from "./checkout.ts";
import { PLAN, PLAN_DRAFT } from "./documents.ts";
import type { createLives, RunHandle } from "./lives.ts";
import { resolveModels } from "./models.ts";
import type { Pipelines } from "./pipelines.ts";
import { type PlanningInput, type PlanningResult, runPlanning } from "./planning.ts";
import { lookAt, type PreflightDeps, preflight, preflightPlan } from "./preflight.ts";
import type { RunRecords } from "./records.ts";
import { ownSessions, stepsToRepeat } from "./resume.ts";
import { unreadable } from "./stored.ts";
import { placeOf } from "./workplace.ts";

export interface RunInput {
  projectPath: string;
  issue: string;
  settings: RunSettings;
  /** A pipeline file other than the project's own. */
  pipelineFile?: string | undefined;
  /** Merge the result into the checkout when everything is approved. */
  apply?: boolean | undefined;
  /** Let other models stand in for those that a person named and that are not there. */
  standIns?: boolean | undefined;
  /** The request is a plan, as `plan` writes it. */
  plan?: boolean | undefined;
  /** What a squad has decided for this project. */
  decisions?: string[] | undefined;
  squad?: string | undefined;
  conversation?: string | undefined;
  /** Work outside git on a folder that is larger than the limit. */
  large?: boolean | undefined;
  /** Told what is to be known of the project before anything is begun. */
  onNote?: ((text: string) => void) | undefined;
  /** Nobody watches it: after a crash, whoever takes up `orphans` goes on with it. */
  unattended?: boolean | undefined;
}

export interface ResumeInput {
  settings?: Partial<RunSettings>;
  issue?: string | undefined;
  unattended?: boolean | undefined;
  standIns?: boolean | undefined;
}

export interface StartDeps extends PreflightDeps {
  engine: Pick<Engine, "session" | "deleteSession" | "serving" | "models">;
  bind: Bind;
  records: RunRecords;
  lives: ReturnType<typeof createLives>;
  pipelines: Pipelines;
  spending: Spending | undefined;
  now: () => Date;
}

/** Starts and resumes runs, and the planning before them. */
export function createStart({ engine, bind, records, lives, pipelines, spending, now, git, env }: StartDeps) {
  const { runs } = records;

  /** Which model serves for each name; refuses if a person named one that is not there. */
  const modelsFor = (loaded: LoadedPipeline, projectPath: string, standIns: boolean): Promise<RunModel[]> =>
    lives.unlessClosed(resolveModels(engine, pipelines.namedModels(loaded, projectPath), standIns));

  function resumable(id: string): RunRow {
    const row = records.known(id);
    const status = records.status(row);
    if (lives.isActive(id) || status === "running")
      throw conflict(`run ${id} is still running${row.pid ? ` in process ${row.pid}` : ""}.`);
    if (status === "done") throw conflict(nothingToResume(row));
    return row;
  }

  return {
    async plan(input: PlanningInput): Promise<PlanningResult> {
      const { settings } = input;
      const projectPath = pipelines.open(input.projectPath);
      checkDocDir(projectPath, settings.docDir);
      await preflightPlan(git, { projectPath, docDir: settings.docDir, documents: [PLAN, PLAN_DRAFT] });
      const loaded = await pipelines.load({ projectPath, settings });
      await modelsFor(loaded, projectPath, input.standIns ?? false);
      const name = loaded.pipeline.primaryModel;
      const model = { name, ...(await engine.serving(name)) };
      return runPlanning({ engine, bind, model, spending, now }, { ...input, projectPath });
    },

    async start({
      issue,
      settings,
      pipelineFile,
      apply,
      standIns = false,
      unattended,
      plan = false,
      decisions,
      large = false,
      onNote,
      ...of
    }: RunInput): Promise<RunHandle> {
      if (issue.trim() === "") throw usageError("there is no request: say what is to be built");
      const projectPath = pipelines.open(of.projectPath);
      checkDocDir(projectPath, settings.docDir);
      const id = newId("r", now().getTime());
      const look = lookAt(git, projectPath, id);
      // Reading the pipeline keeps this thread busy: git is at work meanwhile, once it is begun.
      await setImmediate();
      const loaded = await pipelines.load({ projectPath, settings, pipelineFile });
      const conventions = findConventions(projectPath);
      conventions.catch(() => undefined);
      const { onBranch, documents } = placeOf(loaded.pipeline.pipeline, pipelines.kinds);
      const written = [...documents, settings.summaryFileName];
      const [{ notes, looked }, models] = await Promise.all([
        preflight({ git, env }, { projectPath, docDir: settings.docDir, documents: written, onBranch, large }, look),
        modelsFor(loaded, projectPath, standIns),
      ]);
      for (const note of notes) onNote?.(note);
      const inputs: Inputs = {
        ...fingerprint(loaded, issue),
        pipelineFile: pipelineFile ?? null,
        apply: apply ?? false,
        standIns,
        models,
        unattended: unattended ?? false,
        plan,
        decisions: decisions ?? [],
        settings: kept(settings),
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
      return lives.launch({ id, loaded, inputs, settings, looked, conventions });
    },

    async resume(id: string, given: ResumeInput = {}): Promise<RunHandle> {
      const row = resumable(id);
      const then = readJson(Inputs, row.inputs);
      if (!then || runs.hasForeignSteps(id)) throw conflict(unreadable(`run ${id}`));
      if (runs.steps(id).length > 0 && !lives.hasFolder(id))
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
      return lives.launch({ id, loaded, inputs, settings, staleSessions: ownSessions(id, repeated) });
    },
  };
}

function nothingToResume({ id, outcome, reason, branch }: RunRow): string {
  const ended = `run ${id} has ended (${outcome}${reason === null ? "" : `: ${reason}`}): every phase came to its end, so there is nothing to resume.`;
  if (outcome === "approved") return `${ended} Start a new run for more.`;
  return `${ended} Start a new run for what stands against it${branch === null ? "" : `; what was done is on ${branch}, merge that first to build on it`}.`;
}
