import { messageOf, UserError } from "../lib/errors.ts";
import { newId } from "../lib/ids.ts";
import type { Log } from "../lib/log.ts";
import { oneLine } from "../lib/quoted.ts";
import type { Emit } from "../protocol/events.ts";
import type { Occurrence, OccurrenceState, Schedule } from "../protocol/schedules.ts";
import type { Store } from "../store/open.ts";
import type { Begun, ScheduleRow, ScheduleRows } from "../store/schedules.ts";

/** How something that a schedule began has ended. */
export interface Ended {
  state: "done" | "failed";
  reason: string | null;
}

/** What a schedule can begin. */
export interface ScheduleActions {
  /** Throws a UserError for a squad or a project that is not there. */
  check(schedule: Pick<Schedule, "squad" | "swarm">): void;
  /** Queues a message in the transaction around it, once for each occurrence, and tells its id. */
  send(schedule: Schedule, occurrence: string): string;
  /** The same for a squad's task. */
  delegate(schedule: Schedule): string;
  /** Starts a run under the id given. */
  run(schedule: Schedule, id: string): Promise<void>;
  /** How it ended; undefined while it goes on. */
  endOf(what: Begun, id: string): Ended | "unknown" | undefined;
}

export interface OccurrencesDeps {
  store: Store;
  rows: ScheduleRows;
  actions: ScheduleActions;
  emit: Emit;
  /** Told in its transaction of a schedule that failed too often and pauses itself. */
  onPaused: (schedule: Schedule) => void;
  log: Log;
  now: () => Date;
}

const MOST_FAILURES = 3;

/** What a schedule is without what only IO needs to know. */
export const shown = ({ anchorAt: _, failures: __, ...schedule }: ScheduleRow): Schedule => schedule;

/** The lives of single occurrences: written down, begun, ended. */
export function createOccurrences({ store, rows, actions, emit, onPaused, log, now }: OccurrencesDeps) {
  let isOpen = true;
  const at = () => now().toISOString();
  const tell = (occurrence: Occurrence): Occurrence => {
    emit({ type: "occurrence.changed", data: occurrence });
    return occurrence;
  };

  function make(schedule: string, dueAt: string, state: OccurrenceState, reason: string | null = null): Occurrence {
    const finishedAt = state === "waiting" || state === "running" ? null : at();
    return { id: newId("o"), schedule, dueAt, state, reason, message: null, task: null, run: null, finishedAt };
  }

  function record(occurrence: Occurrence): Occurrence {
    rows.addOccurrence(occurrence);
    return tell(occurrence);
  }

  /** Begins what a schedule is for, in the transaction that writes it down. */
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
      if (!(error instanceof UserError)) log.error("a scheduled run could not be started", { schedule: row.id, error });
      finishSafely(occurrence, { state: "failed", reason: oneLine(messageOf(error), 500) });
    }
  }

  /** Writes down how one ended. A schedule that fails again and again is paused. */
  function finish({ id, schedule }: Occurrence, { state, reason }: Ended): void {
    store.transaction(() => {
      tell(rows.change(id, state, reason, at()));
      const row = rows.find(schedule);
      if (!row) return;
      const failures = state === "failed" ? row.failures + 1 : 0;
      rows.countFailures(schedule, failures);
      if (failures < MOST_FAILURES || row.state !== "active") return;
      pause(schedule, `it failed ${failures} times in a row: ${reason ?? "no reason is known"}`);
    });
  }

  /** Pauses a schedule that cannot go on, and has a person told. */
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
      // The next start finds it open and looks again.
      log.warn("the end of a scheduled occurrence could not be written", { occurrence: occurrence.id, error: messageOf(error) });
    }
  }

  return {
    make,
    record,
    begin,
    finish,
    pause,
    /** One that waited is not wanted any more. */
    giveUp: (id: string, reason: string): void => store.transaction(() => void tell(rows.change(id, "missed", reason, at()))),
    /** Begins one that is written down as waiting. */
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
    /** Something that a schedule may have begun has ended. */
    ended(what: Begun, id: string, ended: Ended): void {
      for (const occurrence of rows.openBy(what, id)) finishSafely(occurrence, ended);
    },
    /** Takes up one that an earlier life left under way. */
    resume(row: ScheduleRow, occurrence: Occurrence): void {
      const what = (["message", "task", "run"] as const).find((each) => occurrence[each] !== null);
      const end = what && actions.endOf(what, occurrence[what]!);
      // A run that has an id and is not there was about to be started.
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
