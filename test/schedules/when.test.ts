import { expect, test } from "vitest";
import { nextAfter, readDuration, readWhen } from "../../src/schedules/when.ts";

const NOW = new Date("2026-11-18T08:00:00Z");
const BERLIN = "Europe/Berlin";
const first = (text: string, tz = "UTC", after = NOW) =>
  nextAfter(readWhen(text, { tz, now: after }), after, { tz, anchor: after })?.toISOString();

test.each([
  ["0 9 * * 1-5", "2026-11-18T09:00:00.000Z"],
  ["  30   8 * * * ", "2026-11-18T08:30:00.000Z"],
  ["every 2h", "2026-11-18T10:00:00.000Z"],
  ["EVERY 2H", "2026-11-18T10:00:00.000Z"],
  ["Every 90s", "2026-11-18T08:01:30.000Z"],
  ["every 5s", "2026-11-18T08:00:05.000Z"],
  ["daily 09:00", "2026-11-18T09:00:00.000Z"],
  ["daily 7:05", "2026-11-19T07:05:00.000Z"],
  ["weekdays 08:30", "2026-11-18T08:30:00.000Z"],
  ["in 20m", "2026-11-18T08:20:00.000Z"],
  ["in 1d", "2026-11-19T08:00:00.000Z"],
  ["2026-12-01T09:00", "2026-12-01T09:00:00.000Z"],
  ["2026-12-01T09:00:30+02:00", "2026-12-01T07:00:30.000Z"],
  ["2026-12-01", "2026-12-01T00:00:00.000Z"],
  ["2026-12-01T09:00+02", "2026-12-01T07:00:00.000Z"],
  ["0 9 ? * 1#2", "2026-12-14T09:00:00.000Z"],
  ["2028-02-29T09:00", "2028-02-29T09:00:00.000Z"],
])("%s is first due at %s", (text, at) => expect(first(text)).toBe(at));

test("times are in the schedule's zone", () => {
  expect(first("daily 09:00", BERLIN)).toBe("2026-11-19T08:00:00.000Z");
  expect(first("2026-12-01T09:00", BERLIN)).toBe("2026-12-01T08:00:00.000Z");
  expect(first("2026-12-01T09:00Z", BERLIN)).toBe("2026-12-01T09:00:00.000Z");
  expect(first("weekdays 00:30", "Pacific/Auckland", new Date("2026-11-20T12:00:00Z"))).toBe("2026-11-22T11:30:00.000Z");
});

test.each([
  ["", "none of the known forms"],
  ["soon", "none of the known forms"],
  ["every 4s", "shortest interval is 5s"],
  ["every 0h", "at least 1"],
  ["every 2 weeks", "takes a number"],
  ["every 99999999d", "up to ten years"],
  ["in", "takes a number"],
  ["daily 24:00", "a time such as 09:00"],
  ["daily", "a time such as 09:00"],
  ["99 9 * * *", "minute"],
  ["0 0 9 * * *", "none of the known forms"],
  ["0 0 30 2 *", "never comes"],
  ["2020-01-01T09:00", "is past"],
  ["2026-13-01T09:00", "is no time"],
  ["2027-02-29T09:00", "is no time"],
  ["2026-11-31", "is no time"],
  ["2027-02-30T09:00Z", "is no time"],
  ["2999-01-01T09:00", "ten years"],
])("%s is refused: %s, with examples", (text, why) => {
  expect(() => first(text)).toThrow(why);
  expect(() => first(text)).toThrow("weekdays 08:30");
});

test("an unknown zone is refused", () => expect(() => first("daily 09:00", "Mars/Phobos")).toThrow("is no time zone"));

test("durations", () => {
  expect(["90s", "20m", "2h", "1d", "1 d"].map(readDuration)).toEqual([90_000, 1_200_000, 7_200_000, 86_400_000, 86_400_000]);
  expect(["", "0s", "2w", "h", "1.5h", "-2h", "9999999999s"].map(readDuration)).toEqual(Array(7).fill(undefined));
});

/** The local time in a zone, computed only with Intl. */
function clockOf(tz: string): (at: Date) => { day: string; minutes: number } {
  const parts = new Intl.DateTimeFormat("en-CA", { timeZone: tz, dateStyle: "short", timeStyle: "short", hour12: false });
  return (at) => {
    const [day = "", time = ""] = parts.format(at).split(", ");
    const [hour, minute] = time.split(":").map(Number) as [number, number];
    return { day, minutes: (hour % 24) * 60 + minute };
  };
}

test.each([
  [BERLIN, 2, 30],
  [BERLIN, 3, 0],
  ["America/New_York", 1, 30],
  ["America/New_York", 2, 15],
  ["Australia/Lord_Howe", 2, 10],
  ["America/Santiago", 0, 0],
  ["Asia/Kathmandu", 5, 45],
  ["UTC", 12, 30],
])("each day of a year in %s, %i:%i comes once, also where the clocks are changed", (tz, hour, minute) => {
  const when = readWhen(`daily ${hour}:${String(minute).padStart(2, "0")}`, { tz, now: NOW });
  const days = new Map<string, Date>();
  const shows = clockOf(tz);
  let at = new Date("2026-01-01T12:00:00Z");
  const end = new Date("2027-01-01T12:00:00Z");
  for (let next = nextAfter(when, at, { tz, anchor: at }); next && next < end; next = nextAfter(when, at, { tz, anchor: at })) {
    expect(next > at).toBe(true);
    at = next;
    const { day, minutes } = shows(next);
    expect(days.has(day)).toBe(false);
    days.set(day, next);
    // A time skipped by a clock change runs within the following hour.
    const late = minutes - (hour * 60 + minute);
    expect(late).toBeGreaterThanOrEqual(0);
    expect(late).toBeLessThanOrEqual(60);
  }
  expect(days.size).toBe(365);
});

test.each([
  ["Australia/Lord_Howe", "2026-09-25", 2, 15],
  ["Australia/Lord_Howe", "2026-03-28", 1, 45],
  ["America/Sao_Paulo", "2018-10-28", 0, 0],
  ["America/Sao_Paulo", "2019-02-10", 23, 30],
  ["Pacific/Apia", "2011-12-25", 9, 0],
  ["Africa/Casablanca", "2026-02-10", 2, 30],
  ["Africa/Casablanca", "2026-03-16", 2, 30],
])("in %s around %s, %i:%i comes once on each day that the calendar there has", (tz, from, hour, minute) => {
  const begin = new Date(`${from}T12:00:00Z`);
  const end = new Date(begin.getTime() + 14 * 86_400_000);
  const when = readWhen(`daily ${hour}:${String(minute).padStart(2, "0")}`, { tz, now: begin });
  const found: string[] = [];
  const shows = clockOf(tz);
  for (
    let next = nextAfter(when, begin, { tz, anchor: begin });
    next && next <= end;
    next = nextAfter(when, next, { tz, anchor: begin })
  )
    found.push(next.toISOString());
  // Independently: the first minute of each day that shows the time, or a later one if it is skipped.
  const days = new Map<string, { at: string; minutes: number }>();
  for (let at = begin.getTime() + 60_000; at <= end.getTime(); at += 60_000) {
    const { day, minutes } = shows(new Date(at));
    if (minutes >= hour * 60 + minute && minutes < hour * 60 + minute + 61 && !days.has(day))
      days.set(day, { at: new Date(at).toISOString(), minutes });
  }
  const late = shows(begin);
  const expected = [...days].filter(([day]) => day !== late.day || late.minutes < hour * 60 + minute).map(([, { at }]) => at);
  expect(found).toHaveLength(expected.length);
  for (const [index, at] of found.entries()) {
    expect(shows(new Date(at)).day).toBe(shows(new Date(expected[index]!)).day);
    expect(Math.abs(Date.parse(at) - Date.parse(expected[index]!))).toBeLessThanOrEqual(3_600_000);
  }
});

test("a day that few months or years have runs only in those; with both day fields, either one matches", () => {
  const list = (text: string, from: string, count: number) => {
    const found: string[] = [];
    let at = new Date(from);
    const when = readWhen(text, { tz: "UTC", now: at });
    for (let index = 0; index < count; index += 1) {
      at = nextAfter(when, at, { tz: "UTC", anchor: at })!;
      found.push(at.toISOString().slice(0, 10));
    }
    return found;
  };
  expect(list("0 0 31 * *", "2026-01-01T00:00:00Z", 7)).toEqual([
    ...["2026-01-31", "2026-03-31", "2026-05-31", "2026-07-31", "2026-08-31", "2026-10-31", "2026-12-31"],
  ]);
  expect(list("0 9 29 2 *", "2026-01-01T00:00:00Z", 3)).toEqual(["2028-02-29", "2032-02-29", "2036-02-29"]);
  // 2096 is a leap year and 2100 is none.
  expect(list("0 9 29 2 *", "2095-01-01T00:00:00Z", 2)).toEqual(["2096-02-29", "2104-02-29"]);
  const either = Array.from({ length: 120 }, (_, day) => new Date(Date.UTC(2026, 0, 2 + day)))
    .filter((day) => day.getUTCDate() === 13 || day.getUTCDay() === 5)
    .map((day) => day.toISOString().slice(0, 10));
  expect(list("0 0 13 * 5", "2026-01-01T00:00:00Z", either.length)).toEqual(either);
});
