import { conflict, messageOf, missing, usageError } from "../lib/errors.ts";
import { newId } from "../lib/ids.ts";
import type { Event } from "../protocol/events.ts";
import type { Source } from "../protocol/messages.ts";
import type { NewSchedule, Occurrence, Schedule } from "../protocol/schedules.ts";
import { isProven } from "../protocol/shown-state.ts";
import type { Task } from "../protocol/squads.ts";
import type { ScheduleRow, ScheduleRows } from "../store/schedules.ts";
import { createDue, type DueDeps, dueAfter } from "./due.ts";
import { createOccurrences, type Ended, type OccurrencesDeps, type ScheduleActions, shown } from "./occurrences.ts";
import { localZone, nextAfter, readDuration, readWhen } from "./when.ts";

/** Who created a schedule, and where its replies go. */
export interface Maker {
  by: "person" | "model";
  source: Source;
  conversation: string;
}

export interface SchedulesDeps extends Omit<OccurrencesDeps, "now">, Pick<DueDeps, "askToCatchUp"> {
  actions: ScheduleActions;
  now?: () => Date;
  steady?: () => number;
}

export interface PageOfList {
  limit: number;
  before?: string | undefined;
}

/** Clock changes are noticed within this time. */
const POLL_MS = 30_000;
/** The delay before a failed check, as on a full disk, is retried. */
const RETRY_MS = 2_000;
const DEFAULT_AGE = "24h";
/** Stops a model, or a schedule, from creating schedules endlessly. */
const MAX_BY_MODELS = 100;
const MAX_SCHEDULES = 20_000;

/** Stores schedules, runs them when they are due, and reports changes. */
export function createSchedules(deps: SchedulesDeps) {
  const { store, rows, actions, emit, onPaused, log, now = () => new Date(), steady = () => performance.now() } = deps;
  const occurrences = createOccurrences({ store, rows, actions, emit, onPaused, log, now });
  const due = createDue({ ...deps, occurrences, now, steady });
  let timer: NodeJS.Timeout | undefined;
  let isOpen = false;
  let looking: Promise<void> | undefined;

  function findOrThrow(id: string): ScheduleRow {
    const row = rows.find(id);
    if (!row) throw missing(`There is no schedule "${id.slice(0, 60)}". List them with: io schedule list`);
    return row;
  }
  const announce = (id: string): Schedule => {
    const schedule = shown(findOrThrow(id));
    emit({ type: "schedule.changed", data: schedule });
    return schedule;
  };

  function look(): Promise<void> {
    let soonest = 0;
    looking ??= due
      .look(() => isOpen)
      .catch((error: unknown) => {
        soonest = RETRY_MS;
        log.warn("cannot check the schedules; trying again", { error: messageOf(error) });
      })
      .finally(() => {
        looking = undefined;
        arm(soonest);
      });
    return looking;
  }

  /** Sets the one timer for all schedules. */
  function arm(soonest = 0): void {
    clearTimeout(timer);
    if (!isOpen) return;
    timer = setTimeout(() => void look(), Math.max(soonest, Math.min(POLL_MS, untilEarliest())));
  }

  function untilEarliest(): number {
    const earliest = rows.earliest();
    return earliest === undefined ? POLL_MS : Math.max(0, Date.parse(earliest) - now().getTime());
  }

  return {
    add(given: NewSchedule, maker: Maker): Schedule {
      const id = newId("s");
      const row = readNew(given, maker, now());
      actions.check(row);
      checkCount(rows, maker);
      return store.transaction(() => {
        rows.insert({ id, ...row });
        store.afterCommit(() => arm());
        return announce(id);
      });
    },
    list: (page: PageOfList): Schedule[] => rows.list(page).map(shown),
    find: (id: string): Schedule => shown(findOrThrow(id)),
    occurrences: (schedule: string, page: PageOfList): Occurrence[] =>
      rows.occurrences({ schedule: findOrThrow(schedule).id, ...page }),
    pause: (id: string): Schedule =>
      store.transaction(() => {
        const { state } = findOrThrow(id);
        if (state !== "active") throw conflict(`This schedule is ${state} already.`);
        rows.setState(id, "paused");
        return announce(id);
      }),
    /** Resumes from now; times missed while paused are not made up. */
    resume: (id: string): Schedule =>
      store.transaction(() => {
        const row = findOrThrow(id);
        if (row.state !== "paused") throw conflict(`This schedule is ${row.state}, not paused.`);
        const next = dueAfter(row, readWhen(row.when, { tz: row.tz, now: new Date(row.createdAt) }), now());
        if (next === undefined) rows.setState(id, "done");
        else rows.setState(id, "active", { nextAt: next.toISOString() });
        store.afterCommit(() => arm());
        return announce(id);
      }),
    /** Removes a schedule and its occurrences. What it started continues. */
    remove: (id: string): void =>
      store.transaction(() => {
        rows.remove(findOrThrow(id).id);
        emit({ type: "schedule.removed", data: { id } });
        store.afterCommit(() => arm());
      }),
    /** Runs it now, in addition to its due times. */
    runNow(id: string): Occurrence {
      const row = findOrThrow(id);
      if (rows.openOf(id).length > 0) throw conflict("It is under way already.");
      const made = occurrences.make(id, now().toISOString(), "running", "asked for by hand");
      return store.transaction(() => occurrences.record(occurrences.begin(row, made)));
    },
    /** Receives every event. */
    heard({ type, data }: Event): void {
      if (type === "message.finished") occurrences.ended("message", data.id, endOfMessage(data));
      if (type === "task.finished") occurrences.ended("task", data.id, endOfTask(data));
      const ended = type === "run.finished" ? endOfRun(data) : undefined;
      if (type === "run.finished" && ended) occurrences.ended("run", data.runId, ended);
    },
    look,
    questionsDue: due.questionsDue,
    start(): void {
      isOpen = true;
      for (const occurrence of rows.open()) {
        if (occurrence.state === "waiting") void due.catchUp(occurrence.schedule, occurrence);
        else occurrences.resume(rows.find(occurrence.schedule)!, occurrence);
      }
      void look();
    },
    async close(): Promise<void> {
      isOpen = false;
      occurrences.close();
      clearTimeout(timer);
      await looking;
    },
  };
}
export type Schedules = ReturnType<typeof createSchedules>;

function checkCount(rows: ScheduleRows, { by }: Maker): void {
  if (by === "model" && rows.unfinished("model") >= MAX_BY_MODELS)
    throw conflict(
      `There are ${MAX_BY_MODELS} schedules that models made, and no more are allowed. Remove some first (schedule_remove).`,
    );
  if (rows.unfinished("anybody") >= MAX_SCHEDULES)
    throw conflict(
      `There are ${MAX_SCHEDULES.toLocaleString("en")} schedules, and no more are allowed. Remove some: io schedule remove <id>`,
    );
}

/** Validates input and fills in defaults. */
function readNew({ squad, swarm, ...given }: NewSchedule, { by, source, conversation }: Maker, at: Date) {
  const { tz = localZone(), maxAge = DEFAULT_AGE, catchUp = "once" } = given;
  const nextAt = nextAfter(readWhen(given.when, { tz, now: at }), at, { tz, anchor: at })!.toISOString();
  if (squad !== undefined && swarm !== undefined) throw usageError("Name a squad for a task or a project for a run, not both.");
  if (readDuration(maxAge) === undefined)
    throw usageError(`"${maxAge}" is not a duration. Use a number with s, m, h or d, such as 24h.`);
  return {
    ...{ tz, maxAge, catchUp, nextAt, text: given.text, source, createdBy: { by, channel: source.channel } },
    ...{ squad: squad ?? null, swarm: swarm ?? null, conversation: given.conversation ?? conversation },
    when: given.when.trim().replace(/\s+/g, " "),
    ...{ anchorAt: at.toISOString(), createdAt: at.toISOString() },
  };
}

/** The result of a finished message for its schedule. */
export function endOfMessage({ status, error }: { status: string; error: { message: string } | null }): Ended {
  return status === "done" ? { state: "done", reason: null } : { state: "failed", reason: error?.message ?? status };
}

/** The result of a finished task, and whether it was proven. */
export function endOfTask(task: Pick<Task, "status" | "evidence" | "error">): Ended {
  return task.status === "done" && !isProven(task) ? { state: "done", reason: "unproven" } : endOfMessage(task);
}

/** The result of a run; undefined if it is running or can be resumed. */
export function endOfRun({ status, outcome }: { status: string; outcome: string | null }): Ended | undefined {
  if (status === "interrupted" || status === "running") return undefined;
  const isGood = outcome === "approved" || outcome === "unchanged";
  return isGood ? { state: "done", reason: outcome } : { state: "failed", reason: `the run is ${outcome ?? status}` };
}
