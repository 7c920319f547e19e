import { messageOf, UserError } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { oneLine } from "../lib/quoted.ts";
import type { Emit } from "../protocol/events.ts";
import type { Occurrence, OccurrenceState, Schedule } from "../protocol/schedules.ts";
import type { Store } from "../store/open.ts";
import type { ScheduleRow, ScheduleRows } from "../store/schedules.ts";
import { type Occurrences, shown } from "./occurrences.ts";
import { nextAfter, readDuration, readWhen, type When } from "./when.ts";

export interface DueDeps {
  store: Store;
  rows: ScheduleRows;
  occurrences: Occurrences;
  /** Asks a person whether what was missed is to be done now; undefined when nobody can be asked any more. */
  askToCatchUp: (schedule: Schedule, occurrence: Occurrence) => Promise<boolean | undefined>;
  emit: Emit;
  log: Log;
  now: () => Date;
  /** Milliseconds of a clock that nobody sets, and that stands still while the machine sleeps. */
  steady: () => number;
}

/** What is looked at later than this was not looked at in time. */
const LATE_MS = 60_000;
const CLOCK_SET_MS = 30_000;
const BATCH = 20;
/** So many missed times of one schedule are written down one by one. */
const MOST_ROWS = 5_000;

const iso = (date: Date) => date.toISOString();

/** When a schedule is due. A single time was read when it was given, and stands in its row. */
export function whenOf({ when, tz, createdAt, nextAt }: Pick<ScheduleRow, "when" | "tz" | "createdAt" | "nextAt">): When {
  if (/^(?:in |\d{4}-)/i.test(when) && nextAt !== null) return { kind: "once", at: new Date(nextAt) };
  return readWhen(when, { tz, now: new Date(createdAt) });
}

export const dueAfter = (row: ScheduleRow, when: When, at: Date): Date | undefined =>
  nextAfter(when, at, { tz: row.tz, anchor: new Date(row.anchorAt) });

/** Accounts for every time at which a schedule was due: each is a row before anything is done about it. */
export function createDue({ store, rows, occurrences, askToCatchUp, emit, log, now, steady }: DueDeps) {
  let clock: { wall: number; steady: number } | undefined;

  /** All that is due of a schedule; at most one of it is begun. */
  function takeUp(row: ScheduleRow, at: Date, why: string): void {
    const when = whenOf(row);
    const dues = [new Date(row.nextAt!)];
    let more = 0;
    let next = dueAfter(row, when, dues[0]!);
    for (; next !== undefined && next <= at; next = dueAfter(row, when, next)) {
      dues.push(next);
      if (dues.length <= MOST_ROWS) continue;
      dues.shift();
      more += 1;
    }
    const last = dues.pop()!;
    const write = (begins: boolean) =>
      store.transaction(() => {
        rows.move(row.id, next && iso(next));
        // A clock that was set back comes by the same times again.
        const missed = dues.filter((due) => !rows.hasOccurrence(row.id, iso(due)));
        for (const [index, due] of missed.entries()) {
          const before = index === 0 && more > 0 ? `; so were ${more.toLocaleString("en")} before it` : "";
          occurrences.record(occurrences.make(row.id, iso(due), "missed", `${why}${before}`));
        }
        if (next === undefined) emit({ type: "schedule.changed", data: shown(rows.find(row.id)!) });
        return rows.hasOccurrence(row.id, iso(last)) ? undefined : latest(row, last, at, { why, begins });
      });
    try {
      write(true);
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      const occurrence = write(false);
      if (occurrence) occurrences.finish(occurrence, { state: "failed", reason: oneLine(error.message, 500) });
    }
  }

  /** The last of what is due: begun, unless it is too late for it or the one before it goes on. */
  function latest(
    row: ScheduleRow,
    due: Date,
    at: Date,
    { why, begins }: { why: string; begins: boolean },
  ): Occurrence | undefined {
    const end = (state: OccurrenceState, reason: string): undefined => {
      occurrences.record(occurrences.make(row.id, iso(due), state, reason));
      return undefined;
    };
    const age = at.getTime() - due.getTime();
    const isLate = age > LATE_MS;
    if (rows.openOf(row.id).length > 0) return end("skipped", "the one before it was still under way");
    if (isLate && row.catchUp === "skip") return end("missed", why);
    if (isLate && age > (readDuration(row.maxAge) ?? 0)) return end("missed", `${why}, and it is older than ${row.maxAge}`);
    if (isLate && row.catchUp === "ask") {
      const waiting = occurrences.record(occurrences.make(row.id, iso(due), "waiting", why));
      store.afterCommit(() => void catchUp(row.id, waiting));
      return undefined;
    }
    const running = occurrences.make(row.id, iso(due), "running", isLate ? `done late: ${why}` : null);
    return occurrences.record(begins ? occurrences.begin(row, running) : running);
  }

  /** Has a person say whether what was missed is done now. */
  async function catchUp(schedule: string, occurrence: Occurrence): Promise<void> {
    try {
      const row = rows.find(schedule);
      const isWanted = row && (await askToCatchUp(shown(row), occurrence));
      if (isWanted === undefined || !rows.openOf(schedule).some(({ id }) => id === occurrence.id)) return;
      if (isWanted) occurrences.beginWaiting(rows.find(schedule)!, occurrence);
      else occurrences.giveUp(occurrence.id, "it was not wanted any more");
    } catch (error) {
      log.warn("what a schedule missed could not be asked for", { schedule, error: messageOf(error) });
    }
  }

  /** What the clocks tell of the time since the last look. */
  function whyLate(at: Date): string {
    const before = clock;
    clock = { wall: at.getTime(), steady: steady() };
    if (!before) return "IO was not running";
    const moved = clock.wall - before.wall - (clock.steady - before.steady);
    if (moved < -CLOCK_SET_MS) restartIntervals(at);
    return moved > CLOCK_SET_MS ? "the machine slept, or its clock was set forward" : "IO was busy";
  }

  /** After the clock was set back an interval would otherwise wait until it is where it was. */
  function restartIntervals(at: Date): void {
    for (const row of rows.intervalsAfter(iso(at))) {
      const when = whenOf(row);
      if (when.kind !== "every" || Date.parse(row.nextAt!) <= at.getTime() + when.ms) continue;
      rows.anchor(row.id, iso(at), iso(new Date(at.getTime() + when.ms)));
    }
  }

  return {
    catchUp,
    /** How many questions about missed times the next look is going to ask. */
    questionsDue: (): number =>
      rows.dueWithQuestion(iso(now())).filter((row) => rows.openOf(row.id).length === 0 && isAskedFor(row, now())).length,
    /** Looks at everything that is due, a few at a time. */
    async look(isOpen: () => boolean): Promise<void> {
      const at = now();
      const why = whyLate(at);
      for (;;) {
        const batch = rows.due(iso(at), BATCH);
        if (batch.length === 0 || !isOpen()) return;
        for (const row of batch) takeUp(row, at, why);
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  };
}

/** Whether the last time at which a schedule was due is late, and not too late, so that a person is asked about it. */
function isAskedFor(row: ScheduleRow, at: Date): boolean {
  const when = whenOf(row);
  let last = new Date(row.nextAt!);
  for (let next = dueAfter(row, when, last); next !== undefined && next <= at; next = dueAfter(row, when, next)) last = next;
  const age = at.getTime() - last.getTime();
  return age > LATE_MS && age <= (readDuration(row.maxAge) ?? 0);
}
