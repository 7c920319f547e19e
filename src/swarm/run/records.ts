import { missing } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import { type Emit, type EventData, newsOf } from "../../protocol/events.ts";
import type { Run, RunSummary } from "../../protocol/runs.ts";
import type { Store } from "../../store/open.ts";
import { openRuns, type RunRow } from "../../store/runs.ts";
import type { EmitRunEvent } from "../context/context.ts";
import { isUnattended } from "../pipeline/inputs.ts";
import { type IsAtWork, statusOf, summarizeRun, viewRun } from "./view.ts";

export interface RunRecordsDeps {
  store: Store;
  emit: Emit;
  log: Log;
  now?: (() => Date) | undefined;
  /** Whether a run is in progress; without an engine none is. */
  isAtWork?: IsAtWork | undefined;
}

/** The runs in the store. Needs no engine. */
export function createRunRecords({ store, emit, log, now = () => new Date(), isAtWork = () => false }: RunRecordsDeps) {
  const runs = openRuns(store);

  function known(id: string): RunRow {
    const row = runs.get(id);
    if (!row) throw missing(`there is no run "${id}". List the runs with: swarm list`);
    return row;
  }
  const view = (id: string): Run => viewRun(runs, known(id), isAtWork);

  /** Announces a run's events to the conversation that asked for it, or to everybody. */
  const emitterFor =
    ({ id, conversation }: RunRow): EmitRunEvent =>
    (type, data) =>
      emit(newsOf(type, { runId: id, ...data } as EventData<typeof type>, conversation));

  return {
    runs,
    transaction: store.transaction,
    known,
    view,
    emitterFor,
    status: (row: RunRow) => statusOf(row, isAtWork),
    summary: (id: string): RunSummary => summarizeRun(runs, known(id), isAtWork),
    list: ({ limit = 50, before }: { limit?: number; before?: string } = {}): RunSummary[] =>
      runs.list(limit, before).map((row) => summarizeRun(runs, row, isAtWork)),
    show(id: string): Run | undefined {
      const row = runs.get(id);
      return row && viewRun(runs, row, isAtWork);
    },
    /** Marks a run as cancelled; the caller must then stop its work. */
    cancel(id: string): Run {
      const row = known(id);
      const status = statusOf(row, isAtWork);
      if (status === "running") runs.askToCancel(id);
      else if (status === "interrupted") {
        store.transaction(() => {
          runs.finish(id, { status: "cancelled", outcome: "cancelled", reason: "it was cancelled", now: now().toISOString() });
          emitterFor(row)("run.finished", { ...view(id) });
        });
      }
      return view(id);
    },
    /** The ids of the runs in progress. */
    running: (): string[] =>
      runs
        .unfinished()
        .filter((row) => statusOf(row, isAtWork) === "running")
        .map(({ id }) => id),
    orphans: (limit: number): Run[] =>
      runs
        .unfinished()
        .slice(0, limit)
        .filter((row) => {
          if (statusOf(row, isAtWork) !== "interrupted") return false;
          const unattended = isUnattended(row.inputs);
          if (unattended === undefined) log.warn("a run was left by another version and cannot be read", { run: row.id });
          return unattended ?? false;
        })
        .map((row) => viewRun(runs, row, isAtWork)),
  };
}
export type RunRecords = ReturnType<typeof createRunRecords>;
