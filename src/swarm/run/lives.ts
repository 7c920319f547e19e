import { existsSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { CLOSING } from "../../away/closing.ts";
import { messageOf, unavailable } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import type { Conventions } from "../../project/conventions.ts";
import type { Run } from "../../protocol/runs.ts";
import { whenFree } from "../../store/open.ts";
import type { Runs } from "../../store/runs.ts";
import type { LoadedPipeline } from "../pipeline/file.ts";
import type { Inputs } from "../pipeline/inputs.ts";
import type { RunSettings } from "../pipeline/settings.ts";
import { applyTo, branchToApplyTo } from "./apply.ts";
import type { RunContext } from "./context.ts";
import { summaryOf, writeStepSummary } from "./documents.ts";
import { type Ending, execute } from "./execute.ts";
import { RunStopped } from "./journal.ts";
import { runKeys } from "./keys.ts";
import { type OpenRunDeps, openRun, type RunLife } from "./open.ts";
import type { RunRecords } from "./records.ts";
import { putAway } from "./workplace.ts";
import type { LookedAt } from "./workspace.ts";

export interface RunHandle {
  id: string;
  /** What a person should know of its pipeline and agents; the run's notes have it too. */
  notes: readonly string[];
  /** The run as it ended. Never rejects. */
  finished: Promise<Run>;
  cancel(): void;
}

export interface LivesDeps extends Omit<OpenRunDeps, "runs"> {
  records: RunRecords;
  log: Log;
}

/** What a run is begun or resumed with. */
export interface Launch {
  id: string;
  loaded: LoadedPipeline;
  inputs: Inputs;
  settings: RunSettings;
  /** What was just found out about the project, if anything was. */
  looked?: LookedAt | undefined;
  conventions?: Promise<Conventions> | undefined;
  /** Sessions of an earlier life whose questions are asked afresh. */
  staleSessions?: readonly string[];
}

const BEAT_MS = 1_000;

/** The runs that this process works on. */
export function createLives(deps: LivesDeps) {
  const { records, engine, log, now } = deps;
  const { runs } = records;
  const active = new Map<string, { stop: AbortController; finished: Promise<Run> }>();
  const cleanups = new Set<Promise<void>>();
  let closings = 0;

  const forget = async (sessions: readonly string[]): Promise<void> => {
    for (const session of sessions) await engine.deleteSession(session);
  };
  const inBackground = (work: Promise<void>): void => {
    const quiet: Promise<void> = work
      .catch((error: unknown) => log.warn("what a run left behind could not all be put away", { error: messageOf(error) }))
      .finally(() => cleanups.delete(quiet));
    cleanups.add(quiet);
  };

  return {
    /** Works on a run until it ends or is stopped. */
    launch({ id, loaded, inputs, settings, looked, conventions, staleSessions = [] }: Launch): RunHandle {
      const stop = new AbortController();
      const { signal } = stop;
      runs.claim(id, process.pid, now().toISOString());
      const endBeat = beat(runs, id, { stop, log, now });
      const row = records.known(id);
      const tell = records.teller(row);
      tell("run.started", { ...records.summary(id) });
      for (const note of loaded.notes) log.warn(note, { run: id });
      const finished = forget(staleSessions)
        .then(() => work(deps, { row, loaded, inputs, settings, looked, conventions, signal, tell }))
        .then(({ ending, cleanUp }) => {
          if (cleanUp) inBackground(forget(cleanUp.sessions).then(cleanUp.putAway));
          return ending;
        })
        .catch((error: unknown) => {
          if (!(error instanceof RunStopped) && !signal.aborted) log.error("a run ended by a fault", { run: id, error });
          return { error };
        })
        .then((ended) => whenFree(() => conclude(records, id, ended, { signal, tell, at: now().toISOString() })))
        .finally(() => {
          endBeat();
          active.delete(id);
        });
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
    /** Whether what a run works with is there. */
    hasFolder: (id: string) => existsSync(join(deps.runsFolder, id)),
    cancel(id: string): Run {
      const here = active.get(id);
      const run = records.cancel(id, here !== undefined);
      here?.stop.abort();
      return run;
    },
    /** Waits for a result, and refuses to go on if `close` was called in the meantime. */
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
      await Promise.all(cleanups);
    },
  };
}

/** Shows other processes that the run is worked on, and stops it when one of them has cancelled it. */
function beat(
  runs: Pick<Runs, "beat" | "cancelAsked">,
  id: string,
  { stop, log, now }: { stop: AbortController; log: Log; now: () => Date },
): () => void {
  const timer = setInterval(() => {
    try {
      runs.beat(id, now().toISOString());
      if (runs.cancelAsked(id)) stop.abort();
    } catch (error) {
      log.warn("a run's sign of life could not be written", { run: id, error: messageOf(error) });
    }
  }, BEAT_MS);
  return () => clearInterval(timer);
}

interface Worked {
  ending: Ending;
  /** What can be removed, unless the run may be resumed. */
  cleanUp: { sessions: string[]; putAway: () => Promise<void> } | undefined;
}

/** One life of a run: its phases, then the merge into the checkout if asked for, then the summary. */
async function work(deps: LivesDeps, life: RunLife): Promise<Worked> {
  const { records, kinds, env } = deps;
  const { runs } = records;
  const { row, inputs, settings } = life;
  const { id } = row;
  const context = await openRun({ ...deps, runs }, life);
  life.loaded.notes.forEach(context.note);
  const { workplace, caller } = context;
  const target = inputs.apply ? await branchToApplyTo(context) : null;
  const ending = await execute(context, kinds, () => records.view(id)).finally(context.end);
  const { branch, base } = workplace.kind === "branch" ? workplace : { branch: null, base: null };
  runs.setTree(id, { branch, base, tree: ending.tree });
  if (inputs.apply && (await applyTo(target, context, ending))) runs.setApplied(id);
  const ended: Run = { ...records.view(id), status: ending.status, outcome: ending.outcome, reason: ending.reason };
  await writeSummary(context, ended, ending, settings.summaryFileName, env.GITHUB_STEP_SUMMARY);
  const done = ending.status === "done";
  return { ending, cleanUp: done ? { sessions: caller.sessions(), putAway: () => putAway(workplace, ended) } : undefined };
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

/** Records how a life ended, and tells it: the run is over, or it waits to be resumed. */
function conclude(
  { runs, view, transaction }: RunRecords,
  id: string,
  ended: Ending | { error: unknown },
  { signal, tell, at }: { signal: AbortSignal; tell: RunContext["tell"]; at: string },
): Run {
  return transaction(() => {
    if ("outcome" in ended) {
      const { status, outcome, reason } = ended;
      runs.finish(id, { status, outcome, reason, now: at });
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
  });
}
