import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import { hasRoom, whenRoom } from "../../lib/disk-room.ts";
import { messageOf, UserError, unavailable } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import type { Conventions } from "../../project/conventions.ts";
import type { Run } from "../../protocol/runs.ts";
import { isDiskFull, isTemporary } from "../../store/faults.ts";
import { whenFree } from "../../store/open.ts";
import { readJson } from "../../store/read-json.ts";
import { CLOSING } from "../../workers/remote/closing.ts";
import type { RunContext } from "../context/context.ts";
import { summaryOf, writeStepSummary } from "../context/documents.ts";
import type { LoadedPipeline } from "../pipeline/file.ts";
import { Inputs } from "../pipeline/inputs.ts";
import type { RunSettings } from "../pipeline/settings.ts";
import { RunStopped } from "../steps/journal.ts";
import { engineerSession, runKeys } from "../steps/keys.ts";
import { treesIn } from "../workspace/companions.ts";
import type { BranchWorkplace, InspectedProject } from "../workspace/workspace.ts";
import { applyTo, branchToApplyTo } from "./apply.ts";
import { type Ending, execute } from "./execute.ts";
import { finishBranches } from "./final-branch.ts";
import { type OpenedRun, type OpenRunDeps, openRun } from "./open.ts";
import type { RunRecords } from "./records.ts";
import { workRound } from "./round.ts";
import { removeRunWorktrees } from "./workplace.ts";

export interface RunHandle {
  id: string;
  /** What a person should know about its pipeline and agents; the run's notes have it too. */
  notes: readonly string[];
  /** The run as it ended. Never rejects. */
  finished: Promise<Run>;
  cancel(): void;
}

export interface RunLauncherDeps extends Omit<OpenRunDeps, "runs" | "atWork"> {
  records: RunRecords;
  /** The ids of the runs in progress, shared with everybody who reads the records. */
  atWork: Set<string>;
  log: Log;
}

/** What a run is begun or resumed with. */
export interface Launch {
  id: string;
  loaded: LoadedPipeline;
  inputs: Inputs;
  settings: RunSettings;
  /** What was just found out about the project, if anything. */
  inspected?: InspectedProject | undefined;
  conventions?: Promise<Conventions> | undefined;
  /** The page of a GitHub job that the summary is added to. */
  stepSummary?: string | undefined;
  /** Sessions of an earlier life to delete because their questions are asked afresh. */
  staleSessions?: readonly string[];
}

/** Launches, interrupts and cancels the daemon's runs. */
export function createRunLauncher(deps: RunLauncherDeps) {
  const { records, atWork, engine, log, now } = deps;
  const { runs } = records;
  const active = new Map<string, { stop: AbortController; finished: Promise<Run> }>();
  const cleanups = new Map<string, Promise<void>>();
  let closings = 0;
  const closing = () => closings > 0;

  const forget = async (sessions: readonly string[]): Promise<void> => {
    for (const session of sessions) await engine.deleteSession(session);
  };
  const inBackground = (id: string, work: Promise<void>): void => {
    const quiet: Promise<void> = work
      .catch((error: unknown) => log.warn("what a run left behind could not all be put away", { error: messageOf(error) }))
      .finally(() => cleanups.delete(id));
    cleanups.set(id, quiet);
  };

  return {
    /** Works on a run until it ends or is stopped. */
    launch({ id, staleSessions = [], ...launch }: Launch): RunHandle {
      const { loaded } = launch;
      const stop = new AbortController();
      const { signal } = stop;
      runs.setRunning(id);
      atWork.add(id);
      const tell = records.emitterFor(records.known(id));
      tell("run.started", { ...records.summary(id) });
      for (const note of loaded.notes) log.warn(note, { run: id });
      const live = (found: Pick<OpenedRun, "inspected" | "conventions">) =>
        work(deps, {
          ...launch,
          inspected: found.inspected,
          conventions: found.conventions,
          row: records.known(id),
          signal,
          tell,
        });
      const finished = forget(staleSessions)
        .then(() => live(launch))
        .catch((error: unknown) => retryWhenWritable(deps, { id, error, signal, live: () => live({}) }))
        .then(({ ending, cleanUp }) => {
          if (cleanUp) inBackground(id, forget(cleanUp.sessions).finally(cleanUp.removeWorktrees));
          return ending;
        })
        .catch((error: unknown) => {
          if (!(error instanceof RunStopped) && !signal.aborted) log.error("a run ended by a fault", { run: id, error });
          return { error };
        })
        .then((ended) => whenFree(() => conclude(deps, id, ended, { signal, tell, at: now().toISOString() }), closing))
        .catch((error: unknown) => {
          atWork.delete(id);
          // A resumed run finds what could not be written now, or does it again.
          log.warn("that a run was let go could not be written", { run: id, error: messageOf(error) });
          return records.view(id);
        })
        .finally(() => active.delete(id));
      active.set(id, { stop, finished });
      return {
        id,
        notes: loaded.notes,
        finished,
        cancel: () => {
          runs.askToCancel(id);
          stop.abort();
        },
      };
    },
    isActive: (id: string) => active.has(id),
    /** Stops a run so that it can be resumed, and waits until it has stopped. */
    async interrupt(id: string): Promise<Run> {
      const here = active.get(id);
      here?.stop.abort();
      return (await here?.finished) ?? records.view(id);
    },
    /** Resolves when a run has ended and its clean-up is done. */
    async settled(id: string): Promise<void> {
      await active.get(id)?.finished;
      await cleanups.get(id);
    },
    /** Whether the run's folder still exists. */
    hasFolder: (id: string) => existsSync(join(deps.runsFolder, id)),
    cancel(id: string): Run {
      try {
        return records.cancel(id);
      } finally {
        active.get(id)?.stop.abort();
      }
    },
    /** Awaits a result, and throws if `close` was called meanwhile. */
    async unlessClosed<T>(work: Promise<T>): Promise<T> {
      const before = closings;
      const result = await work;
      if (closings !== before) throw unavailable("IO is being stopped: nothing was started. Ask again when it is back.");
      return result;
    },
    async close(): Promise<void> {
      closings += 1;
      const all = [...active.values()];
      for (const { stop } of all) stop.abort(CLOSING);
      await Promise.all(all.map(({ finished }) => finished));
      await Promise.all(cleanups.values());
    },
  };
}

/** How often a run that could not write is retried. */
const MAX_RETRIES = 6;
/** The retry delay if the disk has room: another process may hold the database, or a quota may be used up. */
const RETRY_MS = 2_000;

interface FailedLife {
  id: string;
  error: unknown;
  signal: AbortSignal;
  live: () => Promise<WorkResult>;
}

/** Resumes a run that a full disk interrupted once there is room, as after a crash. */
async function retryWhenWritable(
  { records, runsFolder, log }: RunLauncherDeps,
  { id, error, signal, live }: FailedLife,
): Promise<WorkResult> {
  const { runs } = records;
  let last = error;
  for (let tried = 0; tried < MAX_RETRIES && isTemporary(last) && !signal.aborted; tried += 1) {
    log.warn("a run could not write and goes on when it can", { run: id, error: messageOf(last) });
    if (hasRoom(runsFolder)) await sleep(RETRY_MS, undefined, { signal, ref: false }).catch(() => undefined);
    try {
      await whenRoom(runsFolder, signal);
      if (signal.aborted) break;
      await whenFree(
        () => runs.setRunning(id),
        () => signal.aborted,
      );
      return await live();
    } catch (again) {
      last = again;
    }
  }
  if (isDiskFull(last)) throw new UserError(`the disk is full (${messageOf(last)}). Free some space, then: swarm resume ${id}`);
  throw last;
}

interface WorkResult {
  ending: Ending;
  /** What to remove; undefined if the run may be resumed. */
  cleanUp: { sessions: string[]; removeWorktrees: () => Promise<void> } | undefined;
}

/** One life of a run: its phases, then the merge into the checkout if asked for, then the summary. */
async function work(deps: RunLauncherDeps, life: OpenedRun & Pick<Launch, "stepSummary">): Promise<WorkResult> {
  const { records, kinds, env } = deps;
  const { runs } = records;
  const { row, inputs, settings } = life;
  const { id } = row;
  const context = await openRun({ ...deps, runs }, life);
  life.loaded.notes.forEach(context.note);
  const { workplace, caller } = context;
  const target = inputs.apply ? await branchToApplyTo(context) : null;
  const { round } = inputs;
  const view = () => records.view(id);
  const ending = await (round ? workRound(context, round, view) : execute(context, kinds, view)).finally(context.end);
  const { branch, base } = workplace.kind === "branch" ? workplace : { branch: null, base: null };
  runs.setTree(id, { branch, base, tree: ending.tree });
  if (workplace.kind === "branch") await keepTrees(runs, id, workplace, ending);
  if (!round) await finishBranches(context, row.issue, records.view(id).streams, ending);
  if (inputs.apply && (await applyTo(target, context, ending))) runs.setApplied(id);
  const ended: Run = { ...records.view(id), status: ending.status, outcome: ending.outcome, reason: ending.reason };
  if (!round) await writeSummary(context, ended, ending, settings.summaryFileName, life.stepSummary ?? env.GITHUB_STEP_SUMMARY);
  const done = ending.status === "done";
  const kept = inputs.reopenable ? ended.streams.map(({ number }) => engineerSession(id, number)) : [];
  const sessions = caller.sessions().filter((session) => !kept.includes(session));
  return { ending, cleanUp: done ? { sessions, removeWorktrees: () => removeRunWorktrees(workplace, ended) } : undefined };
}

/** Stores the final tree of each repository, if there are several. */
async function keepTrees(runs: RunRecords["runs"], id: string, workplace: BranchWorkplace, { tree }: Ending): Promise<void> {
  const inputs = readJson(Inputs, runs.get(id)?.inputs ?? "");
  if (workplace.companions.length === 0 || tree === null || !inputs) return;
  const { own, others } = await treesIn(workplace, tree);
  const theirs = inputs.with.map((each, index) => ({ ...each, tree: others[index] }));
  runs.setInputs(id, JSON.stringify({ ...inputs, with: theirs, ownTree: own }));
}

async function writeSummary(
  { documents, journal, workplace }: RunContext,
  run: Run,
  ending: Ending,
  fileName: string,
  page: string | undefined,
): Promise<void> {
  const changes = workplace.kind === "branch" && run.tree ? await workplace.workspace.stat(workplace.baseTree, run.tree) : "";
  const summary = summaryOf(run, changes);
  documents.writeLast(fileName, "Swarm summary", summary);
  await journal.step(z.boolean(), { key: runKeys.summary, kind: "git", phase: "run" }, ending, async () => {
    writeStepSummary(page, summary);
    return { value: true };
  });
}

/** Records and announces how a life ended: the run is over, or waits to be resumed. */
function conclude(
  { records: { runs, view, transaction }, atWork }: Pick<RunLauncherDeps, "records" | "atWork">,
  id: string,
  ended: Ending | { error: unknown },
  { signal, tell, at }: { signal: AbortSignal; tell: RunContext["tell"]; at: string },
): Run {
  // The transaction already sees the run as inactive; if it fails, the run counts as in progress again.
  const seen = () => {
    atWork.delete(id);
    return view(id);
  };
  const write = (): Run => {
    if ("outcome" in ended) {
      const { status, outcome, reason } = ended;
      runs.finish(id, { status, outcome, reason, now: at });
    } else if (!signal.aborted) {
      runs.finish(id, { status: "failed", outcome: "failed", reason: messageOf(ended.error), now: at });
    } else if (runs.cancelAsked(id)) {
      runs.finish(id, { status: "cancelled", outcome: "cancelled", reason: "it was cancelled", now: at });
    }
    const run = seen();
    if (run.status !== "interrupted") tell("run.finished", { ...run });
    return run;
  };
  try {
    return transaction(write);
  } catch (error) {
    atWork.add(id);
    throw error;
  }
}
