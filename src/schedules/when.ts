import { Cron } from "croner";
import { messageOf, usageError } from "../lib/errors.ts";

/** A parsed schedule time. */
export type When = { kind: "cron"; fields: string } | { kind: "every"; ms: number } | { kind: "once"; at: Date };

const UNITS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const MIN_MS = 5_000;
/** Far beyond any plan, but within the range of dates. */
const MAX_MS = 3_650 * UNITS.d;
const EXAMPLES = '"0 9 * * 1-5", "every 2h", "daily 09:00", "weekdays 08:30", "in 20m" or "2030-01-31T09:00"';

/** Parses a duration such as `90s`, `20m`, `2h` or `1d` into milliseconds; undefined for anything else. */
export function readDuration(text: string): number | undefined {
  const [, count, unit] = /^(\d{1,9})\s?(s|m|h|d)$/.exec(text.trim().toLowerCase()) ?? [];
  const ms = count === undefined ? Number.NaN : Number(count) * UNITS[unit as keyof typeof UNITS];
  return ms > 0 && ms <= MAX_MS ? ms : undefined;
}

/** Parses the time of a schedule as given by a person or a model. */
export function readWhen(text: string, { tz, now }: { tz: string; now: Date }): When {
  checkZone(tz);
  const given = text.trim().replace(/\s+/g, " ");
  const [first = "", ...rest] = given.split(" ");
  const [word, time] = [first.toLowerCase(), rest.join(" ")];
  if (word === "every" || word === "in") {
    const ms = readDuration(time);
    if (ms === undefined) throw bad(given, `"${word}" takes a number of at least 1 with s, m, h or d, up to ten years`);
    if (word === "in") return { kind: "once", at: new Date(now.getTime() + ms) };
    if (ms < MIN_MS) throw bad(given, "the shortest interval is 5s");
    return { kind: "every", ms };
  }
  if (word === "daily" || word === "weekdays") {
    const [, hour, minute] = /^([01]?\d|2[0-3]):([0-5]\d)$/.exec(time) ?? [];
    if (hour === undefined) throw bad(given, `"${word}" takes a time such as 09:00`);
    return { kind: "cron", fields: `${Number(minute)} ${Number(hour)} * * ${word === "daily" ? "*" : "1-5"}` };
  }
  if (/^\d{4}-\d\d-\d\d[T ]?/.test(given)) return { kind: "once", at: readTime(given, tz, now) };
  if (rest.length !== 4) throw bad(given, "it is none of the known forms");
  if (occurrencesOf(given, tz).nextRun(now) === null) throw bad(given, "it never comes");
  return { kind: "cron", fields: given };
}

/** The next due time after a given time; undefined if there is none. Intervals count from the anchor. */
export function nextAfter(when: When, after: Date, { tz, anchor }: { tz: string; anchor: Date }): Date | undefined {
  if (when.kind === "once") return when.at > after ? when.at : undefined;
  if (when.kind === "cron") return occurrencesOf(when.fields, tz).nextRun(after) ?? undefined;
  const passed = Math.max(0, Math.floor((after.getTime() - anchor.getTime()) / when.ms));
  return new Date(anchor.getTime() + (passed + 1) * when.ms);
}

export const localZone = (): string => Intl.DateTimeFormat().resolvedOptions().timeZone;

function checkZone(tz: string): void {
  try {
    new Intl.DateTimeFormat("en", { timeZone: tz });
  } catch {
    throw usageError(`"${tz.slice(0, 60)}" is no time zone. Use a name such as Europe/Berlin or UTC.`);
  }
}

function readTime(text: string, tz: string, now: Date): Date {
  const isDay = /^\d{4}-\d\d-\d\d$/.test(text);
  const [, day, time, seconds = ":00", zone = ""] =
    /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)?(?:\.\d+)?(Z|[+-]\d\d(?::?\d\d)?)?$/.exec(isDay ? `${text}T00:00` : text) ?? [];
  const iso = `${day}T${time}${seconds}${zone.length === 3 ? `${zone}:00` : zone}`;
  let at: Date | undefined;
  // A time without an offset is local time in the schedule's zone.
  if (time !== undefined && isDayOfCalendar(day)) at = zone === "" ? localTime(iso, tz) : new Date(iso);
  if (at === undefined || Number.isNaN(at.getTime())) throw bad(text, "it is no time");
  if (at <= now) throw bad(text, "it is past");
  if (at.getTime() - now.getTime() > MAX_MS) throw bad(text, "it is more than ten years away");
  return at;
}

/** Rejects dates like February 30, which would parse as a day in March. */
function isDayOfCalendar(day = ""): boolean {
  const read = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(read.getTime()) && read.toISOString().startsWith(day);
}

function localTime(iso: string, tz: string): Date | undefined {
  try {
    return new Cron(iso, { timezone: tz }).nextRun(new Date(0)) ?? undefined;
  } catch {
    return undefined;
  }
}

function occurrencesOf(fields: string, tz: string): Cron {
  try {
    // Some write "?" for "any"; it must not restrict the other day field.
    return new Cron(fields.replace(/(?<=^|\s)\?(?=\s|$)/g, "*"), { timezone: tz, mode: "5-part" });
  } catch (error) {
    throw bad(fields, messageOf(error).replace(/^CronPattern: /, ""));
  }
}

function bad(text: string, why: string) {
  return usageError(`"${text.slice(0, 100)}" is not a schedule time: ${why}. Use ${EXAMPLES}.`);
}
