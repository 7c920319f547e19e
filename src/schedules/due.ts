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
  /** Asks a person whether to catch up on a missed time; undefined if the question became obsolete. */
  askToCatchUp: (schedule: Schedule, occurrence: Occurrence) => Promise<boolean | undefined>;
  emit: Emit;
  log: Log;
  now: () => Date;
  /** A monotonic clock in milliseconds that stops while the machine sleeps. */
  steady: () => number;
}

/** An occurrence checked later than this counts as late. */
const LATE_MS = 60_000;
/** The most missed times stored in one transaction. */
const BATCH = 500;
const SLICE_MS = 10;
/** How many missed times of an interval get a row each: more than a week of the shortest interval. */
const MAX_INTERVAL_ROWS = 150_000;
/** How far back missed times of cron fields get a row each. */
const MAX_CRON_AGE_MS = 100 * 86_400_000;

const iso = (date: Date) => date.toISOString();

/** Parses when a schedule is due. A single time was resolved when it was given; its row contains the result. */
export function whenOf({ when, tz, createdAt, nextAt }: Pick<ScheduleRow, "when" | "tz" | "createdAt" | "nextAt">): When {
  if (/^(?:in |\d{4}-)/i.test(when) && nextAt !== null) return { kind: "once", at: new Date(nextAt) };
  return readWhen(when, { tz, now: new Date(createdAt) });
}

export const dueAfter = (row: ScheduleRow, when: When, at: Date): Date | undefined =>
  nextAfter(when, at, { tz: row.tz, anchor: new Date(row.anchorAt) });

/** Handles schedules that are due. Every due time is stored as a row before anything is started. */
export function createDue({ store, rows, occurrences, askToCatchUp, emit, log, now, steady }: DueDeps) {
  const clocks = createClocks({ store, rows, steady });

  /** Stores the due times of a schedule, for a few milliseconds at most, and starts only the latest. */
  function processDue(row: ScheduleRow, at: Date, why: string): void {
    const when = whenOf(row);
    const endOfSlice = performance.now() + SLICE_MS;
    const first = new Date(row.nextAt!);
    const dues = [first];
    const skipped = skippedUntil(when, first, at);
    let next = dueAfter(row, when, skipped ?? first);
    while (!skipped && next && next <= at && dues.length < BATCH && performance.now() < endOfSlice) {
      dues.push(next);
      next = dueAfter(row, when, next);
    }
    const more = skipped ? `; so was every time after it before ${iso(skipped)}` : "";
    const last = skipped || (next && next <= at) ? undefined : dues.pop()!;
    const write = (begins: boolean) =>
      store.transaction(() => {
        rows.move(row.id, next && iso(next));
        // After the clock was set back, the same times come again.
        for (const due of dues.filter((each) => !rows.hasOccurrence(row.id, iso(each)))) {
          const missed = occurrences.make(row.id, iso(due), "missed", why + more);
          // Emit events only with the last batch: nobody needs thousands at once.
          if (last) occurrences.record(missed);
          else rows.addOccurrence(missed);
        }
        if (next === undefined) emit({ type: "schedule.changed", data: shown(rows.find(row.id)!) });
        return last && !rows.hasOccurrence(row.id, iso(last)) ? handleLatest(row, last, at, { why, begins }) : undefined;
      });
    try {
      write(true);
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      const occurrence = write(false);
      if (occurrence) occurrences.finish(occurrence, { state: "failed", reason: oneLine(error.message, 500) });
    }
  }

  /** Starts the latest due time, unless it is too late or the previous occurrence is still running. */
  function handleLatest(
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

  /** Asks a person whether to catch up, and acts on the answer. */
  async function catchUp(schedule: string, occurrence: Occurrence): Promise<void> {
    try {
      const row = rows.find(schedule);
      const isWanted = row && (await askToCatchUp(shown(row), occurrence));
      if (isWanted === undefined || !rows.openOf(schedule).some(({ id }) => id === occurrence.id)) return;
      if (isWanted) occurrences.beginWaiting(rows.find(schedule)!, occurrence);
      else occurrences.giveUp(occurrence.id, "it was not wanted any more");
    } catch (error) {
      log.warn("cannot ask about a schedule's missed time", { schedule, error: messageOf(error) });
    }
  }

  /** Pauses a schedule that cannot be processed, so that it does not block the others. */
  function processDueSafely(row: ScheduleRow, at: Date, why: string): void {
    try {
      processDue(row, at, why);
    } catch (error) {
      if (isTemporary(error)) throw error;
      log.error("cannot process a schedule; pausing it", { schedule: row.id, error });
      occurrences.pause(row.id, `it could not be processed: ${oneLine(messageOf(error), 500)}`);
    }
  }

  return {
    catchUp,
    /** How many questions about missed times the next check will ask. */
    questionsDue: (): number =>
      rows.dueWithQuestion(iso(now())).filter((row) => rows.openOf(row.id).length === 0 && needsQuestion(row, now())).length,
    /** Processes everything that is due, a few milliseconds at a time. */
    async look(isOpen: () => boolean): Promise<void> {
      const at = now();
      const why = await clocks.whyLate(at);
      const breathe = createBreath();
      // Fetch one row at a time: other work between two may pause or remove the next.
      for (let row = rows.firstDue(iso(at)); row && isOpen(); row = rows.firstDue(iso(at))) {
        processDueSafely(row, at, why);
        await breathe();
      }
    },
  };
}

/** If a schedule missed too many times to store each: the time from which each gets a row again. */
function skippedUntil(when: When, first: Date, at: Date): Date | undefined {
  const back = when.kind === "every" ? MAX_INTERVAL_ROWS * when.ms : MAX_CRON_AGE_MS;
  return first.getTime() < at.getTime() - back ? new Date(at.getTime() - back) : undefined;
}

/** Whether a schedule's latest due time is late but not too old, so that a person is asked about it. */
function needsQuestion(row: ScheduleRow, at: Date): boolean {
  const when = whenOf(row);
  const next = new Date(row.nextAt!);
  const wasDueSince = (from: number): boolean => {
    const due = next.getTime() >= from ? next : dueAfter(row, when, new Date(from - 1));
    return due !== undefined && due <= at;
  };
  return wasDueSince(at.getTime() - (readDuration(row.maxAge) ?? 0)) && !wasDueSince(at.getTime() - LATE_MS);
}
