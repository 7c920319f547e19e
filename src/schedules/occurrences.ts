import { messageOf, UserError } from "../lib/errors.ts";
import { newId } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import { oneLine } from "../lib/quoted.ts";
import type { Emit } from "../protocol/events.ts";
import type { Occurrence, OccurrenceState, Schedule } from "../protocol/schedules.ts";
import type { Store } from "../store/open.ts";
import type { Begun, ScheduleRow, ScheduleRows } from "../store/schedules.ts";

/** How something that a schedule started ended. */
export interface Ended {
  state: "done" | "failed";
  reason: string | null;
}

/** What a schedule can start. */
export interface ScheduleActions {
  /** Throws a UserError if the squad or project does not exist. */
  check(schedule: Pick<Schedule, "squad" | "swarm">): void;
  /** Queues a message in the surrounding transaction, once per occurrence, and returns its id. */
  send(schedule: Schedule, occurrence: string): string;
  /** The same for a squad task. */
  delegate(schedule: Schedule): string;
  /** Starts a run with the given id. */
  run(schedule: Schedule, id: string): Promise<void>;
  /** How it ended; undefined while it runs. */
  endOf(what: Begun, id: string): Ended | "unknown" | undefined;
}

export interface OccurrencesDeps {
  store: Store;
  rows: ScheduleRows;
  actions: ScheduleActions;
  emit: Emit;
  /** Called, in the same transaction, when a schedule is paused because it cannot continue. */
  onPaused: (schedule: Schedule) => void;
  log: Log;
  now: () => Date;
}

const MAX_FAILURES = 3;

/** The public part of a schedule's row. */
export const shown = ({ anchorAt: _, failures: __, ...schedule }: ScheduleRow): Schedule => schedule;

/** Creates, starts and finishes single occurrences. */
export function createOccurrences({ store, rows, actions, emit, onPaused, log, now }: OccurrencesDeps) {
  let isOpen = true;
  const at = () => now().toISOString();
  const announce = (occurrence: Occurrence): Occurrence => {
    emit({ type: "occurrence.changed", data: occurrence });
    return occurrence;
  };

  function make(schedule: string, dueAt: string, state: OccurrenceState, reason: string | null = null): Occurrence {
    const finishedAt = state === "waiting" || state === "running" ? null : at();
    return { id: newId("o"), schedule, dueAt, state, reason, message: null, task: null, run: null, finishedAt };
  }

  function record(occurrence: Occurrence): Occurrence {
    rows.addOccurrence(occurrence);
    return announce(occurrence);
  }

  /** Starts the schedule's message, task or run, in the transaction that stores the occurrence. */
  function begin(row: ScheduleRow, occurrence: Occurrence): Occurrence {
    const { squad, swarm } = row;
    if (squad !== null) return { ...occurrence, state: "running", task: actions.delegate(shown(row)) };
    if (swarm === null) return { ...occurrence, state: "running", message: actions.send(shown(row), occurrence.id) };
    const running: Occurrence = { ...occurrence, state: "running", run: newId("r") };
    store.afterCommit(() => void startRun(row, running));
    return running;
  }

  async function startRun(row: ScheduleRow, occurrence: Occurrence): Promise<void> {
    try {
      await actions.run(shown(row), occurrence.run!);
    } catch (error) {
      if (!isOpen) return;
      if (!(error instanceof UserError)) log.error("cannot start a scheduled run", { schedule: row.id, error });
      finishSafely(occurrence, { state: "failed", reason: oneLine(messageOf(error), 500) });
    }
  }

  /** Stores how an occurrence ended. Pauses a schedule that fails repeatedly. */
  function finish({ id, schedule }: Occurrence, { state, reason }: Ended): void {
    store.transaction(() => {
      announce(rows.change(id, state, reason, at()));
      const row = rows.find(schedule);
      if (!row) return;
      const failures = state === "failed" ? row.failures + 1 : 0;
      rows.countFailures(schedule, failures);
      if (failures < MAX_FAILURES || row.state !== "active") return;
      pause(schedule, `it failed ${failures} times in a row: ${reason ?? "no reason is known"}`);
    });
  }

  /** Pauses a schedule that cannot continue, and notifies a person. */
  function pause(schedule: string, reason: string): void {
    store.transaction(() => {
      rows.setState(schedule, "paused", { reason });
      const paused = shown(rows.find(schedule)!);
      emit({ type: "schedule.changed", data: paused });
      onPaused(paused);
    });
  }

  function finishSafely(occurrence: Occurrence, ended: Ended): void {
    try {
      finish(occurrence, ended);
    } catch (error) {
      // It stays open; the next start handles it.
      log.warn("cannot store the end of a scheduled occurrence", { occurrence: occurrence.id, error: messageOf(error) });
    }
  }

  return {
    make,
    record,
    begin,
    finish,
    pause,
    /** Ends a waiting occurrence that is no longer wanted. */
    giveUp: (id: string, reason: string): void => store.transaction(() => void announce(rows.change(id, "missed", reason, at()))),
    /** Starts a waiting occurrence. */
    beginWaiting(row: ScheduleRow, occurrence: Occurrence): void {
      try {
        store.transaction(() => {
          rows.removeOccurrence(occurrence.id);
          record(begin(row, occurrence));
        });
      } catch (error) {
        if (!(error instanceof UserError)) throw error;
        finish(occurrence, { state: "failed", reason: oneLine(error.message, 500) });
      }
    },
    /** Finishes the occurrences that started this message, task or run. */
    ended(what: Begun, id: string, ended: Ended): void {
      for (const occurrence of rows.openBy(what, id)) finishSafely(occurrence, ended);
    },
    /** Resumes an occurrence that was running when the previous daemon ended. */
    resume(row: ScheduleRow, occurrence: Occurrence): void {
      const what = (["message", "task", "run"] as const).find((each) => occurrence[each] !== null);
      const end = what && actions.endOf(what, occurrence[what]!);
      // A run with an id but no record had not been started yet.
      if (end === "unknown" && what === "run") void startRun(row, occurrence);
      else if (end === "unknown") finishSafely(occurrence, { state: "failed", reason: `its ${what} is gone` });
      else if (end) finishSafely(occurrence, end);
    },
    close(): void {
      isOpen = false;
    },
  };
}
export type Occurrences = ReturnType<typeof createOccurrences>;
