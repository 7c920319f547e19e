import { createBreath } from "../lib/breath.ts";
import { messageOf, UserError } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { oneLine } from "../lib/quoted.ts";
import type { Emit } from "../protocol/events.ts";
import type { Occurrence, OccurrenceState, Schedule } from "../protocol/schedules.ts";
import { isTemporary } from "../store/faults.ts";
import type { Store } from "../store/open.ts";
import type { ScheduleRow, ScheduleRows } from "../store/schedules.ts";
import { createClocks } from "./clocks.ts";
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
/** Missed times are written down in transactions of so many rows, or fewer where it takes longer to find them. */
const MOST_AT_ONCE = 500;
const SLICE_MS = 10;
/** So many missed times of an interval are rows of their own: more than a week of the shortest. */
const MOST_OF_INTERVAL = 150_000;
/** So far back the missed times of cron fields are rows of their own. */
const LONGEST_BACK_MS = 100 * 86_400_000;

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
  const clocks = createClocks({ store, rows, steady });

  /** What is due of a schedule, as far as a few milliseconds go; at most the last of it is begun. */
  function takeUp(row: ScheduleRow, at: Date, why: string): void {
    const when = whenOf(row);
    const endOfSlice = performance.now() + SLICE_MS;
    const first = new Date(row.nextAt!);
    const dues = [first];
    const skipped = tooLongAgo(when, first, at);
    let next = dueAfter(row, when, skipped ?? first);
    while (!skipped && next && next <= at && dues.length < MOST_AT_ONCE && performance.now() < endOfSlice) {
      dues.push(next);
      next = dueAfter(row, when, next);
    }
    const more = skipped ? `; so was every time after it before ${iso(skipped)}` : "";
    const last = skipped || (next && next <= at) ? undefined : dues.pop()!;
    const write = (begins: boolean) =>
      store.transaction(() => {
        rows.move(row.id, next && iso(next));
        // A clock that was set back comes by the same times again.
        for (const due of dues.filter((each) => !rows.hasOccurrence(row.id, iso(each)))) {
          const missed = occurrences.make(row.id, iso(due), "missed", why + more);
          // Of very many only the latest are told: nobody needs thousands of events at once.
          if (last) occurrences.record(missed);
          else rows.addOccurrence(missed);
        }
        if (next === undefined) emit({ type: "schedule.changed", data: shown(rows.find(row.id)!) });
        return last && !rows.hasOccurrence(row.id, iso(last)) ? latest(row, last, at, { why, begins }) : undefined;
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

  /** What is due of one schedule. A schedule that cannot be read must not keep the others from their times. */
  function takeUpSafely(row: ScheduleRow, at: Date, why: string): void {
    try {
      takeUp(row, at, why);
    } catch (error) {
      if (isTemporary(error)) throw error;
      log.error("a schedule could not be looked at and is paused", { schedule: row.id, error });
      occurrences.pause(row.id, `it could not be looked at: ${oneLine(messageOf(error), 500)}`);
    }
  }

  return {
    catchUp,
    /** How many questions about missed times the next look is going to ask. */
    questionsDue: (): number =>
      rows.dueWithQuestion(iso(now())).filter((row) => rows.openOf(row.id).length === 0 && isAskedFor(row, now())).length,
    /** Looks at everything that is due, a few milliseconds at a time. */
    async look(isOpen: () => boolean): Promise<void> {
      const at = now();
      const why = await clocks.whyLate(at);
      const breathe = createBreath();
      // One at a time: whoever has the thread meanwhile may pause or remove the next.
      for (let row = rows.firstDue(iso(at)); row && isOpen(); row = rows.firstDue(iso(at))) {
        takeUpSafely(row, at, why);
        await breathe();
      }
    },
  };
}

/** Where a schedule was due so often that not every time is a row of its own: the moment from which each is one again. */
function tooLongAgo(when: When, first: Date, at: Date): Date | undefined {
  const back = when.kind === "every" ? MOST_OF_INTERVAL * when.ms : LONGEST_BACK_MS;
  return first.getTime() < at.getTime() - back ? new Date(at.getTime() - back) : undefined;
}

/** Whether the last time at which a schedule was due is late, and not too late, so that a person is asked about it. */
function isAskedFor(row: ScheduleRow, at: Date): boolean {
  const when = whenOf(row);
  const next = new Date(row.nextAt!);
  const wasDueSince = (from: number): boolean => {
    const due = next.getTime() >= from ? next : dueAfter(row, when, new Date(from - 1));
    return due !== undefined && due <= at;
  };
  return wasDueSince(at.getTime() - (readDuration(row.maxAge) ?? 0)) && !wasDueSince(at.getTime() - LATE_MS);
}
