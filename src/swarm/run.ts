import { mkdirSync, realpathSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { z } from "zod";
import type { Engine } from "../engine/port.ts";
import { ExitCode, messageOf, UserError, usageError } from "../lib/errors.ts";
import { newId } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import { packageRoot } from "../lib/paths.ts";
import type { Emit, EventType } from "../protocol/events.ts";
import type { Run, RunSummary, Said } from "../protocol/runs.ts";
import type { ModelCall } from "../protocol/usage.ts";
import type { Store } from "../store/open.ts";
import { openRuns, type RunRow } from "../store/runs.ts";
import { openers } from "./ahead.ts";
import { type Bind, createCaller } from "./caller.ts";
import { type Check, createChecks } from "./checks.ts";
import type { RunContext } from "./context.ts";
import { documentNames, openDocuments, summaryOf, writeStepSummary } from "./documents.ts";
import { apply, type Ending, execute } from "./execute.ts";
import { createJournal, hashOf, RunStopped } from "./journal.ts";
import type { Settings } from "./pipeline/env.ts";
import { findPipelineFile, type LoadedPipeline, loadPipeline } from "./pipeline/file.ts";
import { fingerprint, Inputs, kept, whatChanged } from "./pipeline/inputs.ts";
import { type Plan, resolvePlan } from "./pipeline/plan.ts";
import { type PlanningInput, type PlanningResult, runPlanning } from "./planning.ts";
import { dropMerged, removeWorktree } from "./tree/git.ts";
import { type Ground, openGround, removeEmpty, streamBranch } from "./tree/workspace.ts";
import { statusOf, summarizeRun, viewRun } from "./view.ts";

export interface SwarmParts {
  store: Store;
  engine: Pick<Engine, "session" | "deleteSession">;
  emit: Emit;
  /** The tools of a pipeline agent, behind the gate. */
  bind: Bind;
  findChecks: (folder: string) => Promise<Check[]>;
  /** Where runs keep their worktrees and documents. */
  runsFolder: string;
  log: Log;
  /** What ships with us. */
  shipped?: { agents: string; pipeline: string };
  /** What the project's own checks get, without secrets; and where GITHUB_STEP_SUMMARY is read. */
  env?: NodeJS.ProcessEnv;
  onSay?: (said: Said) => void;
  recordUsage?: (owner: string, actor: string, call: ModelCall) => void;
  checkDeadlineMs?: number;
  now?: () => Date;
}

export interface RunInput {
  projectPath: string;
  issue: string;
  settings: Settings;
  /** A pipeline file other than the project's own. */
  pipelineFile?: string | undefined;
  /** Merge the result into the checkout when everything is approved. */
  apply?: boolean | undefined;
  /** What a squad has decided for this project. */
  decisions?: string[] | undefined;
  squad?: string | undefined;
  conversation?: string | undefined;
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
  validate(input: { projectPath: string; settings: Settings; pipelineFile?: string | undefined }): Plan;
  /** The questions of the pm, the analysis, and plan.md. */
  plan(input: PlanningInput): Promise<PlanningResult>;
  start(input: RunInput): RunHandle;
  /** Goes on with a run that was interrupted, cancelled or has failed. */
  resume(id: string, given?: { settings?: Settings; issue?: string | undefined }): RunHandle;
  cancel(id: string): Run;
  list(options?: { limit?: number; before?: string }): RunSummary[];
  show(id: string): Run | undefined;
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

export function createSwarm(parts: SwarmParts): Swarm {
  const {
    store,
    engine,
    emit,
    bind,
    findChecks,
    runsFolder,
    log,
    onSay,
    recordUsage,
    checkDeadlineMs = 600_000,
    now = () => new Date(),
  } = parts;
  const env = parts.env ?? process.env;
  const shipped = parts.shipped ?? {
    agents: join(packageRoot, "agents"),
    pipeline: join(packageRoot, "pipelines", "default.yaml"),
  };
  const runs = openRuns(store);
  const active = new Map<string, { stop: AbortController; finished: Promise<Run> }>();
  const chores = new Set<Promise<void>>();

  function load(projectPath: string, settings: Settings, file: string | undefined): LoadedPipeline {
    const root = openProject(projectPath);
    const places = { root, agentsDir: settings.agentsDir, shipped: shipped.agents };
    return loadPipeline(file === undefined ? findPipelineFile(root, shipped.pipeline) : resolve(root, file), places, settings);
  }

  const view = (id: string): Run => viewRun(runs, known(id), now());

  function known(id: string): RunRow {
    const row = runs.get(id);
    if (!row) throw new UserError(`there is no run "${id}". List the runs to see which there are.`);
    return row;
  }

  function launch(row: RunRow, loaded: LoadedPipeline, inputs: Inputs, settings: Settings): RunHandle {
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
    const tell = (type: EventType, data: Record<string, unknown>) =>
      emit({ type, ...(row.conversation !== null && { conversation: row.conversation }), data: { runId: id, ...data } });
    tell("run.started", { ...summarizeRun(runs, known(id), now()) });
    const finished = work(known(id), loaded, inputs, settings, stop.signal, tell)
      .catch((error: unknown) => {
        if (!(error instanceof RunStopped) && !stop.signal.aborted) log.error("a run ended by a fault", { run: id, error });
        return { error };
      })
      .then((ended) => conclude(id, ended, stop.signal, tell))
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

  async function work(
    row: RunRow,
    loaded: LoadedPipeline,
    inputs: Inputs,
    settings: Settings,
    signal: AbortSignal,
    tell: RunContext["tell"],
  ): Promise<Ending> {
    const { id } = row;
    const { pipeline, agents } = loaded;
    const folder = join(runsFolder, id);
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const documents = openDocuments({ projectPath: row.project_path, docDir: settings.docDir, folder, now });
    const journal = createJournal({
      runs,
      runId: id,
      life: row.lives,
      emit,
      conversation: row.conversation ?? undefined,
      signal,
      now,
    });
    const caller = createCaller({
      engine,
      bind,
      journal,
      runs,
      agents,
      settings,
      signal,
      recordUsage,
      ...(onSay && { onSay }),
    });
    const ground = await openRunGround(row, loaded, settings, folder, (cwd) =>
      caller.expect(openers(pipeline, pipeline.pipeline[0], cwd)),
    );
    const note = (text: string) =>
      journal.put({ key: `note:${hashOf(text).slice(0, 12)}`, kind: "note", phase: "run" }, "done", text);
    if (ground.kind === "branch" && ground.repo.dirty && ground.repo.head !== null) {
      note("the checkout has uncommitted changes; the run works from the last commit and does not see them");
    }
    const context: RunContext = {
      runId: id,
      pipeline,
      settings,
      journal,
      caller,
      checks: createChecks({ journal, configured: pipeline.checks, findChecks, signal, deadlineMs: checkDeadlineMs, env, now }),
      documents,
      ground,
      about: { issue: row.issue, decisions: inputs.decisions },
      signal,
      tell,
      note,
      recordLoop: (loop) =>
        journal.put(
          { key: `loop:${loop.key}`, kind: "loop", phase: loop.phase, stream: loop.stream, agent: loop.agent },
          "done",
          loop,
        ),
      recordStream: (stream) => {
        const head = { key: `stream:${stream.number}`, kind: "stream" as const, phase: "implement", stream: stream.number };
        journal.put(head, stream.status === "failed" ? "failed" : "done", stream, stream.reason ?? undefined);
      },
    };
    const ending = await execute(context, () => view(id));
    if (ground.kind === "branch") runs.setTree(id, { branch: ground.branch, base: ground.base, tree: ending.tree });
    else runs.setTree(id, { branch: null, base: null, tree: ending.tree });
    if (inputs.apply && ending.outcome === "approved" && (await apply(context))) runs.setApplied(id);
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
    if (ending.status === "done") chore(putAway(ground, ended, caller.spent()));
    return ending;
  }

  /** The place a run works in, and its branch, written down before anything is done there. */
  async function openRunGround(
    row: RunRow,
    { pipeline }: LoadedPipeline,
    settings: Settings,
    folder: string,
    onPlace: (cwd: string) => void,
  ): Promise<Ground> {
    const implement = pipeline.pipeline.find((phase) => phase.phase === "implement");
    const leftOut = documentNames(pipeline, settings.docDir, settings.summaryFileName);
    const ground = await openGround(
      { projectPath: row.project_path, runId: row.id, folder, parallel: implement?.parallel ?? false, leftOut, onPlace },
      row.base === null ? undefined : { base: row.base },
    );
    if (ground.kind === "branch" && row.base === null)
      runs.setTree(row.id, { branch: ground.branch, base: ground.base, tree: null });
    return ground;
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

  /** Takes away what an ended run no longer needs; nothing that holds uncommitted work. */
  async function putAway(ground: Ground, run: Run, sessions: readonly string[]): Promise<void> {
    for (const session of sessions) await engine.deleteSession(session);
    if (ground.kind === "in place") return;
    for (const stream of run.streams.filter((each) => each.status === "done")) {
      if ((await removeWorktree(ground.repo, join(ground.folder, "worktrees", `stream-${stream.number}`))) === "removed") {
        await dropMerged(ground.repo, streamBranch(ground.branch, stream.number), ground.branch);
      }
    }
    await removeWorktree(ground.repo, ground.workspace.path);
    removeEmpty(join(ground.folder, "worktrees"));
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
    plan: (input) => runPlanning({ engine, bind, now }, { ...input, projectPath: openProject(input.projectPath) }),
    start({ projectPath, issue, settings, pipelineFile, apply: applied = false, decisions = [], squad, conversation }) {
      if (issue.trim() === "") throw usageError("there is no request: say what is to be built");
      const root = openProject(projectPath);
      const loaded = load(root, settings, pipelineFile);
      const inputs: Inputs = {
        ...fingerprint(loaded, issue),
        pipelineFile: pipelineFile ?? null,
        apply: applied,
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
    resume(id, given = {}) {
      const row = known(id);
      const status = statusOf(row, now());
      if (active.has(id) || status === "running")
        throw new UserError(`run ${id} is still running${row.pid ? ` in process ${row.pid}` : ""}.`);
      if (status === "done")
        throw new UserError(`run ${id} has ended (${row.outcome}); there is nothing to resume. Start a new run.`);
      const inputs = Inputs.parse(JSON.parse(row.inputs));
      const { primaryModel, reviewModel, ...rest } = inputs.settings;
      const settings: Settings = given.settings ?? { ...rest, issue: row.issue, primaryModel, reviewModel };
      const loaded = load(row.project_path, settings, inputs.pipelineFile ?? undefined);
      const changed = whatChanged(inputs, fingerprint(loaded, given.issue ?? row.issue));
      if (changed.length > 0) {
        throw new UserError(`run ${id} cannot be resumed: ${changed.join("; ")}. Put it back as it was, or start a new run.`);
      }
      if (status === "failed") runs.forgetFailures(id);
      return launch(row, loaded, inputs, settings);
    },
    cancel(id) {
      const row = known(id);
      const here = active.get(id);
      const status = statusOf(row, now());
      if (here || status === "running") runs.askToCancel(id);
      else if (status === "interrupted")
        runs.finish(id, { status: "cancelled", outcome: "cancelled", reason: "it was cancelled", now: now().toISOString() });
      here?.stop.abort();
      return view(id);
    },
    list: ({ limit = 50, before } = {}) => runs.list(limit, before).map((row) => summarizeRun(runs, row, now())),
    show(id) {
      const row = runs.get(id);
      return row && viewRun(runs, row, now());
    },
    async close() {
      const all = [...active.values()];
      for (const { stop } of all) stop.abort();
      await Promise.all(all.map(({ finished }) => finished));
      await Promise.all(chores);
    },
  };
}

function openProject(path: string): string {
  const folder = resolve(path);
  if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory())
    throw usageError(`${folder}: is no folder. Name the project's folder.`);
  return realpathSync(folder);
}
