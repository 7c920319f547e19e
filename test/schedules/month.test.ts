import { expect, test } from "vitest";
import type { NewSchedule } from "../../src/protocol/schedules.ts";
import { DAY, HOUR, MINUTE, scheduleWorld } from "../support/schedule-world.ts";

/** A seeded random generator. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}

interface ShownMinute {
  at: number;
  day: string;
  time: string;
}

/** Independent of IO's code: formats every minute in the zone. */
function minutesOf(tz: string, from: number, to: number): ShownMinute[] {
  const clock = new Intl.DateTimeFormat("en-CA", { timeZone: tz, dateStyle: "short", timeStyle: "short", hour12: false });
  const first = Math.floor(from / MINUTE) * MINUTE;
  return Array.from({ length: Math.floor((to - first) / MINUTE) + 1 }, (_, index) => {
    const at = first + index * MINUTE;
    const [day = "", time = ""] = clock.format(at).split(", ");
    return { at, day, time: time.replace(/^24/, "00") };
  });
}

/** The first minute of each day that shows a time; on a day that skips it, 24 hours after the previous one. */
function daily(tz: string, time: string, from: number, to: number): number[] {
  const days = new Map<string, number | undefined>();
  for (const minute of minutesOf(tz, from - 2 * DAY, to + DAY))
    if (days.get(minute.day) === undefined) days.set(minute.day, minute.time === time ? minute.at : undefined);
  const found = [...days.values()];
  return found.map((at, index) => at ?? (found[index - 1] ?? 0) + DAY).filter((at) => at > from && at <= to);
}

const every = (ms: number) => (from: number, to: number) =>
  Array.from({ length: Math.floor((to - from) / ms) }, (_, index) => from + (index + 1) * ms);

const PLAN: { given: NewSchedule; expected: (from: number, to: number) => number[] }[] = [
  { given: { when: "every 37m", text: "a" }, expected: every(37 * MINUTE) },
  {
    given: { when: "daily 02:30", text: "b", tz: "Europe/Berlin" },
    expected: (...span) => daily("Europe/Berlin", "02:30", ...span),
  },
  {
    given: { when: "30 1 * * *", text: "c", tz: "America/New_York", catchUp: "skip" },
    expected: (...span) => daily("America/New_York", "01:30", ...span),
  },
  {
    given: { when: "daily 02:15", text: "d", tz: "America/New_York" },
    expected: (...span) => daily("America/New_York", "02:15", ...span),
  },
  {
    given: { when: "15 */3 * * 1-5", text: "e", tz: "America/New_York", maxAge: "2h" },
    expected: (from, to) =>
      [...minutesOf("America/New_York", from, to)]
        .filter(
          ({ at, day, time }) =>
            at > from && new Date(`${day}T12:00Z`).getUTCDay() % 6 !== 0 && /^(?:00|03|06|09|12|15|18|21):15$/.test(time),
        )
        .map(({ at }) => at),
  },
];

test.each([
  ["into summer", "2026-03-05T00:00:30Z", 1],
  ["into summer", "2026-03-05T00:00:30Z", 2],
  ["into winter", "2026-10-20T00:00:30Z", 3],
  ["into winter", "2026-10-20T00:00:30Z", 4],
] as const)(
  "in a month with sleep, kills and clock changes %s, every occurrence is recorded once (from %s, seed %i)",
  {
    timeout: 120_000,
  },
  async (_, start, seed) => {
    const io = scheduleWorld(start);
    await io.start();
    const next = random(seed);
    const made = PLAN.map(({ given }) => io.add(given));
    const from = Date.parse(io.iso());
    let kills = 0;
    for (let message = 0; Date.parse(io.iso()) < from + 31 * DAY; ) {
      const what = next();
      const ms = Math.floor((what < 0.9 ? 40 * MINUTE : 9 * HOUR) * next()) + 1_000;
      if (what < 0.75) await io.pass(ms);
      else if (what < 0.85) await io.pass(ms, { asleep: true });
      else if (what < 0.92) await io.restart(ms);
      else {
        kills += 1;
        await io.kill(1 + Math.floor(4 * next()), ms, Math.floor(HOUR * next()));
      }
      for (; message < io.sent.length; message += 1) io.end(io.sent[message]!.message);
    }
    expect(kills).toBeGreaterThan(10);
    const end = Date.parse(io.iso());
    for (const [index, { id }] of made.entries()) {
      const found = io.all(id);
      const expected = PLAN[index]!.expected(from, end).map((at) => new Date(at).toISOString());
      const dues = new Set(found.map(({ dueAt }) => dueAt));
      expect([id, "left out", expected.filter((at) => !dues.has(at)).slice(0, 5)]).toEqual([id, "left out", []]);
      expect([id, "rows", found.length, dues.size]).toEqual([id, "rows", expected.length, expected.length]);
      expect(found.filter(({ state, finishedAt }) => state === "waiting" || finishedAt === null)).toEqual([]);
      // Every started occurrence was sent once, and nothing else was.
      const sent = io.sent.filter(({ schedule }) => schedule === id).map(({ occurrence }) => occurrence);
      const begun = new Set(found.flatMap(({ id: occurrence, message }) => (message === null ? [] : occurrence)));
      expect([sent.length, new Set(sent).size]).toEqual([begun.size, begun.size]);
      expect(sent.filter((occurrence) => !begun.has(occurrence)).slice(0, 5)).toEqual([]);
    }
  },
);

test("after a week without IO every missed time of the shortest interval and of cron fields gets a row, without blocking the event loop", {
  timeout: 120_000,
}, async () => {
  const io = scheduleWorld();
  await io.start();
  const often = io.add({ when: "every 5s", text: "look" });
  const fields = io.add({ when: "*/15 * * * *", text: "look", tz: "Europe/Berlin" });
  const count = (id: string) =>
    io.store.db.prepare("SELECT count(*) AS rows, count(DISTINCT due_at) AS times FROM occurrences WHERE schedule = ?").get(id);
  const total = () =>
    Number((io.store.db.prepare("SELECT coalesce(max(seq), 0) AS n FROM occurrences").get() as { n: number }).n);
  let [most, before, isOver] = [0, 0, false];
  const watch = () => {
    if (isOver) return;
    const now = total();
    most = Math.max(most, now - before);
    before = now;
    setImmediate(watch);
  };
  watch();
  const news = io.news.length;
  await io.restart(7 * DAY);
  most = Math.max(most, total() - before);
  isOver = true;
  const week = 7 * 24 * 60;
  expect(count(often.id)).toEqual({ rows: week * 12, times: week * 12 });
  expect(count(fields.id)).toEqual({ rows: week / 15, times: week / 15 });
  expect(io.sent.map(({ schedule }) => schedule).sort()).toEqual([often.id, fields.id].sort());
  expect(most).toBeLessThanOrEqual(501);
  // Thousands of events would push out those that clients still need.
  expect(io.news.length - news).toBeLessThanOrEqual(1_002);
});

test("after a very long time without IO only the latest times get a row, and the first row mentions the rest", async () => {
  const io = scheduleWorld();
  await io.start();
  const { id } = io.add({ when: "daily 09:00", text: "look", tz: "UTC", catchUp: "skip" });
  await io.restart(200 * DAY);
  const [first, ...rest] = io.all(id);
  const from = new Date(Date.parse(io.iso()) - 100 * DAY).toISOString();
  expect(first).toMatchObject({
    dueAt: "2026-01-01T09:00:00.000Z",
    reason: `IO was not running; so was every time after it before ${from}`,
  });
  expect(rest).toHaveLength(100);
  expect(rest[0]!.dueAt > from).toBe(true);
});

test("setting the clock forward and back runs nothing twice and skips nothing", async () => {
  const io = scheduleWorld("2026-01-01T10:00:30Z");
  await io.start();
  const { id } = io.add({ when: "*/15 * * * *", text: "look", tz: "UTC" });
  const often = io.add({ when: "every 10m", text: "look" });
  let ended = 0;
  const pass = async (times: number) => {
    for (let at = 0; at < times; at += 1) {
      await io.pass(MINUTE);
      for (; ended < io.sent.length; ended += 1) io.end(io.sent[ended]!.message);
    }
  };
  await pass(60);
  io.setClock(5 * HOUR);
  await pass(30);
  io.setClock(-5 * HOUR);
  await pass(8 * 60);
  for (const { id: schedule } of [{ id }, often]) {
    const dues = io.all(schedule).map(({ dueAt }) => dueAt);
    expect(new Set(dues).size).toBe(dues.length);
  }
  const expected = Array.from(
    { length: (9 * 60 + 30) / 15 },
    (_, at) => new Date(Date.parse("2026-01-01T10:15:00Z") + at * 15 * MINUTE),
  );
  expect(
    io
      .all(id)
      .map(({ dueAt }) => dueAt)
      .sort(),
  ).toEqual(expected.map((at) => at.toISOString()));
  // The interval continued at once after each change: three times in each of the eight half hours.
  const late = io.all(often.id).filter(({ dueAt }) => dueAt > "2026-01-01T11:30:30Z" && dueAt <= "2026-01-01T19:30:30Z");
  expect(late.filter(({ state }) => state === "done").length).toBeGreaterThanOrEqual(46);
});

test("a time that comes again after the clock was set back and the schedule resumed does not run again", async () => {
  const io = scheduleWorld("2026-01-01T08:00:30Z");
  await io.start();
  const { id } = io.add({ when: "daily 09:00", text: "look", tz: "UTC" });
  await io.pass(HOUR);
  io.end(io.sent[0]!.message);
  io.setClock(-HOUR);
  await io.pass(MINUTE);
  io.schedules.pause(id);
  expect(io.schedules.resume(id).nextAt).toBe("2026-01-01T09:00:00.000Z");
  await io.pass(HOUR);
  expect(io.all(id)).toMatchObject([{ dueAt: "2026-01-01T09:00:00.000Z", state: "done" }]);
  expect(io.sent).toHaveLength(1);
  expect(io.schedules.find(id)).toMatchObject({ state: "active", nextAt: "2026-01-02T09:00:00.000Z" });
});

test("an unreadable schedule is paused and reported, and the others run", async () => {
  const io = scheduleWorld();
  await io.start();
  const broken = io.add({ when: "daily 00:02", text: "look", tz: "UTC" });
  const whole = io.add({ when: "daily 00:03", text: "look", tz: "UTC" });
  // As after a move to a machine without this time zone.
  io.store.db.prepare("UPDATE schedules SET tz = 'Mars/Phobos' WHERE id = ?").run(broken.id);
  await io.pass(5 * MINUTE);
  expect(io.sent.map(({ schedule }) => schedule)).toEqual([whole.id]);
  expect(io.schedules.find(broken.id)).toMatchObject({ state: "paused", reason: expect.stringContaining("is no time zone") });
  expect(io.paused.map(({ id }) => id)).toEqual([broken.id]);
});

test("while the store cannot be written, checks back off and the schedule runs once it can", { timeout: 60_000 }, async () => {
  const io = scheduleWorld();
  await io.start();
  io.add({ when: "every 1m", text: "look" });
  const tries = io.breakDisk();
  await io.pass(MINUTE);
  await expect.poll(() => tries.length, { timeout: 20_000 }).toBeGreaterThanOrEqual(2);
  expect(tries[1]! - tries[0]!).toBeGreaterThan(1_500);
  expect(io.sent).toEqual([]);
  await io.restart(1_000);
  expect(io.sent).toHaveLength(1);
});

test("a person is asked about a missed time if the latest one is late but not too old, for every kind of schedule", async () => {
  const asks = async (when: string, ms: number, more: object = {}) => {
    const io = scheduleWorld();
    await io.start();
    io.add({ when, text: "look", tz: "UTC", catchUp: "ask", ...more });
    await io.schedules.close();
    io.setClock(ms);
    const due = io.schedules.questionsDue();
    await io.restart(0);
    expect(io.asked).toHaveLength(due);
    return due;
  };
  expect(await asks("daily 09:00", 30 * DAY)).toBe(1);
  expect(await asks("daily 09:00", 9 * HOUR)).toBe(0);
  expect(await asks("daily 09:00", 12 * HOUR, { maxAge: "2h" })).toBe(0);
  expect(await asks("every 1h", 90 * MINUTE)).toBe(1);
  expect(await asks("every 1h", HOUR)).toBe(0);
  expect(await asks("in 20m", HOUR)).toBe(1);
  expect(await asks("in 20m", 2 * DAY)).toBe(0);
  expect(await asks("*/30 * * * *", 2 * DAY)).toBe(0);
});
