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

/** Who makes a schedule, and where its replies go. */
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

/** A clock that was set is noticed within this time. */
const LOOK_MS = 30_000;
/** A look that failed, as on a full disk, is repeated after this time. */
const RETRY_MS = 2_000;
const DEFAULT_AGE = "24h";
/** A model that makes ever more of them, or a schedule that does, comes to an end. */
const MOST_OF_MODELS = 100;
const MOST = 20_000;

/** What is done at set times: kept, looked at when it is due, and told. */
export function createSchedules(deps: SchedulesDeps) {
  const { store, rows, actions, emit, onPaused, log, now = () => new Date(), steady = () => performance.now() } = deps;
  const occurrences = createOccurrences({ store, rows, actions, emit, onPaused, log, now });
  const due = createDue({ ...deps, occurrences, now, steady });
  let timer: NodeJS.Timeout | undefined;
  let isOpen = false;
  let looking: Promise<void> | undefined;

  function known(id: string): ScheduleRow {
    const row = rows.find(id);
    if (!row) throw missing(`There is no schedule "${id.slice(0, 60)}". List them with: io schedule list`);
    return row;
  }
  const tell = (id: string): Schedule => {
    const schedule = shown(known(id));
    emit({ type: "schedule.changed", data: schedule });
    return schedule;
  };

  function look(): Promise<void> {
    let soonest = 0;
    looking ??= due
      .look(() => isOpen)
      .catch((error: unknown) => {
        soonest = RETRY_MS;
        log.warn("the schedules could not be looked at and are looked at again", { error: messageOf(error) });
      })
      .finally(() => {
        looking = undefined;
        arm(soonest);
      });
    return looking;
  }

  /** One timer for all of them. */
  function arm(soonest = 0): void {
    clearTimeout(timer);
    if (!isOpen) return;
    timer = setTimeout(() => void look(), Math.max(soonest, Math.min(LOOK_MS, untilEarliest())));
  }

  function untilEarliest(): number {
    const earliest = rows.earliest();
    return earliest === undefined ? LOOK_MS : Math.max(0, Date.parse(earliest) - now().getTime());
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
        return tell(id);
      });
    },
    list: (page: PageOfList): Schedule[] => rows.list(page).map(shown),
    find: (id: string): Schedule => shown(known(id)),
    occurrences: (schedule: string, page: PageOfList): Occurrence[] =>
      rows.occurrences({ schedule: known(schedule).id, ...page }),
    pause: (id: string): Schedule =>
      store.transaction(() => {
        const { state } = known(id);
        if (state !== "active") throw conflict(`This schedule is ${state} already.`);
        rows.setState(id, "paused");
        return tell(id);
      }),
    /** Goes on from now: what was due meanwhile was not wanted. */
    resume: (id: string): Schedule =>
      store.transaction(() => {
        const row = known(id);
        if (row.state !== "paused") throw conflict(`This schedule is ${row.state}, not paused.`);
        const next = dueAfter(row, readWhen(row.when, { tz: row.tz, now: new Date(row.createdAt) }), now());
        if (next === undefined) rows.setState(id, "done");
        else rows.setState(id, "active", { nextAt: next.toISOString() });
        store.afterCommit(() => arm());
        return tell(id);
      }),
    /** With everything that is known of it; what it began goes on. */
    remove: (id: string): void =>
      store.transaction(() => {
        rows.remove(known(id).id);
        emit({ type: "schedule.removed", data: { id } });
        store.afterCommit(() => arm());
      }),
    /** Does it now, besides the times at which it is due. */
    runNow(id: string): Occurrence {
      const row = known(id);
      if (rows.openOf(id).length > 0) throw conflict("It is under way already.");
      const made = occurrences.make(id, now().toISOString(), "running", "asked for by hand");
      return store.transaction(() => occurrences.record(occurrences.begin(row, made)));
    },
    /** To be told of everything that happens. */
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
  if (by === "model" && rows.unfinished("model") >= MOST_OF_MODELS)
    throw conflict(
      `There are ${MOST_OF_MODELS} schedules that models made, and no more are allowed. Remove some first (schedule_remove).`,
    );
  if (rows.unfinished("anybody") >= MOST)
    throw conflict(
      `There are ${MOST.toLocaleString("en")} schedules, and no more are allowed. Remove some: io schedule remove <id>`,
    );
}

/** What was given, checked, with what is left out. */
function readNew({ squad, swarm, ...given }: NewSchedule, { by, source, conversation }: Maker, at: Date) {
  const { tz = localZone(), maxAge = DEFAULT_AGE, catchUp = "once" } = given;
  const nextAt = nextAfter(readWhen(given.when, { tz, now: at }), at, { tz, anchor: at })!.toISOString();
  if (squad !== undefined && swarm !== undefined) throw usageError("Name a squad for a task or a project for a run, not both.");
  if (readDuration(maxAge) === undefined)
    throw usageError(`"${maxAge}" is no length of time. Use a number with s, m, h or d, such as 24h.`);
  return {
    ...{ tz, maxAge, catchUp, nextAt, text: given.text, source, createdBy: { by, channel: source.channel } },
    ...{ squad: squad ?? null, swarm: swarm ?? null, conversation: given.conversation ?? conversation },
    when: given.when.trim().replace(/\s+/g, " "),
    ...{ anchorAt: at.toISOString(), createdAt: at.toISOString() },
  };
}

/** How a message or a task that has ended counts for its schedule. */
export function endOfMessage({ status, error }: { status: string; error: { message: string } | null }): Ended {
  return status === "done" ? { state: "done", reason: null } : { state: "failed", reason: error?.message ?? status };
}

/** How a task counts, and whether it was seen to work. */
export function endOfTask(task: Pick<Task, "status" | "evidence" | "error">): Ended {
  return task.status === "done" && !isProven(task) ? { state: "done", reason: "unproven" } : endOfMessage(task);
}

/** How a run counts; undefined for one that goes on, now or later. */
export function endOfRun({ status, outcome }: { status: string; outcome: string | null }): Ended | undefined {
  if (status === "interrupted" || status === "running") return undefined;
  const isGood = outcome === "approved" || outcome === "unchanged";
  return isGood ? { state: "done", reason: outcome } : { state: "failed", reason: `the run is ${outcome ?? status}` };
}
