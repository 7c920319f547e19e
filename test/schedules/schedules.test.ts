import { expect, onTestFinished, test } from "vitest";
import { missing } from "../../src/lib/errors.ts";
import type { Event, News } from "../../src/protocol/events.ts";
import type { NewSchedule, Occurrence, Schedule } from "../../src/protocol/schedules.ts";
import { createSchedules } from "../../src/schedules/schedules.ts";
import { openStore } from "../../src/store/open.ts";
import { createScheduleRows } from "../../src/store/schedules.ts";
import { quietLog } from "../support/engine.ts";
import { until } from "../support/until.ts";

const MAKER = { by: "person", source: { channel: "api" }, conversation: "main" } as const;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Schedules on clocks that the test moves. Messages end when the test says so, runs are remembered. */
function world(start = "2026-01-01T00:00:30Z") {
  const store = openStore(":memory:");
  onTestFinished(() => store.close());
  const rows = createScheduleRows(store);
  let wall = Date.parse(start);
  let steady = 0;
  const news: News[] = [];
  const sent: { schedule: string; occurrence: string; at: string }[] = [];
  const runs: string[] = [];
  const known = new Set<string>();
  const asked: { occurrence: Occurrence; answer: (wanted: boolean | undefined) => void }[] = [];
  let refusal: string | undefined;
  const open = () => {
    const schedules = createSchedules({
      store,
      rows,
      onPaused: () => undefined,
      actions: {
        check: () => undefined,
        send({ id }, occurrence) {
          if (refusal !== undefined) throw missing(refusal);
          const message = `m_${sent.length}`;
          sent.push({ schedule: id, occurrence, at: new Date(wall).toISOString() });
          known.add(message);
          return message;
        },
        delegate: () => "t_1",
        run: async (_, id) => void runs.push(id),
        endOf: (_, id) => (known.has(id) ? undefined : "unknown"),
      },
      askToCatchUp: (_, occurrence) => new Promise((answer) => asked.push({ occurrence, answer })),
      emit: (each) => void news.push(each),
      log: quietLog,
      now: () => new Date(wall),
      steady: () => steady,
    });
    onTestFinished(() => schedules.close());
    return schedules;
  };
  let schedules = open();
  const all = (id: string) => schedules.occurrences(id, { limit: 200_000 }).reverse();
  const end = (message: string, status = "done") => {
    const error = status === "done" ? null : { code: "x", message: "it broke" };
    schedules.heard({ id: 1, type: "message.finished", data: { id: message, status, error } } as unknown as Event);
  };
  return {
    ...{ store, rows, news, sent, runs, asked, known, all, end },
    get schedules() {
      return schedules;
    },
    add: (given: NewSchedule): Schedule => schedules.add(given, MAKER),
    /** Time passes, asleep or awake, and it is looked what is due. */
    async pass(ms: number, { asleep = false } = {}) {
      wall += ms;
      if (!asleep) steady += ms;
      await schedules.look();
    },
    setClock: (ms: number) => {
      wall += ms;
    },
    /** The daemon ends, and comes back later. */
    async restart(ms: number) {
      await schedules.close();
      wall += ms;
      steady = 0;
      schedules = open();
      schedules.start();
      await schedules.look();
    },
    async start() {
      schedules.start();
      await schedules.look();
    },
    refuse(why: string | undefined) {
      refusal = why;
    },
    iso: () => new Date(wall).toISOString(),
  };
}
const states = (occurrences: Occurrence[]) => occurrences.map(({ state }) => state);

test("every occurrence is a row, is sent once, and ends with its message", async () => {
  const io = world();
  await io.start();
  const { id, nextAt } = io.add({ when: "every 1m", text: "look" });
  expect(nextAt).toBe("2026-01-01T00:01:30.000Z");
  await io.pass(59_000);
  expect(io.all(id)).toEqual([]);
  await io.pass(1_000);
  expect(io.all(id)).toMatchObject([{ dueAt: nextAt, state: "running", message: "m_0", reason: null }]);
  await io.schedules.look();
  expect(io.sent).toHaveLength(1);
  io.end("m_0");
  await io.pass(MINUTE);
  io.end("m_1", "failed");
  expect(io.all(id)).toMatchObject([
    { state: "done", finishedAt: expect.any(String) },
    { state: "failed", reason: "it broke", message: "m_1" },
  ]);
  expect(io.news.filter(({ type }) => type === "occurrence.changed")).toHaveLength(4);
});

test("one that is due while the one before it is under way is skipped, and says why", async () => {
  const io = world();
  await io.start();
  const { id } = io.add({ when: "every 1m", text: "look" });
  await io.pass(MINUTE);
  await io.pass(MINUTE);
  io.end("m_0");
  await io.pass(MINUTE);
  expect(io.all(id)).toMatchObject([
    { state: "done" },
    { state: "skipped", reason: "the one before it was still under way" },
    { state: "running" },
  ]);
  expect(io.sent).toHaveLength(2);
});

test.each([
  ["once", ["missed", "missed", "running"], 1],
  ["skip", ["missed", "missed", "missed"], 0],
  ["ask", ["missed", "missed", "waiting"], 0],
] as const)("after three days without IO, %s: %j", async (catchUp, expected, sent) => {
  const io = world();
  await io.start();
  const { id } = io.add({ when: "daily 09:00", text: "look", tz: "UTC", catchUp });
  await io.restart(3 * DAY);
  expect(states(io.all(id))).toEqual(expected);
  expect(io.sent).toHaveLength(sent);
  for (const { reason } of io.all(id)) expect(reason).toContain("IO was not running");
  expect(io.schedules.find(id).nextAt).toBe("2026-01-04T09:00:00.000Z");
});

test("what was missed is asked for once, also over a restart, and is done or given up as a person says", async () => {
  const io = world();
  await io.start();
  const wanted = io.add({ when: "daily 09:00", text: "look", tz: "UTC", catchUp: "ask" });
  const unwanted = io.add({ when: "daily 10:00", text: "look", tz: "UTC", catchUp: "ask" });
  await io.restart(DAY);
  expect(io.asked).toHaveLength(2);
  for (const { answer } of io.asked) answer(undefined);
  await io.restart(MINUTE);
  expect(io.asked.slice(2).map(({ occurrence }) => occurrence.id)).toEqual(
    io.asked.slice(0, 2).map(({ occurrence }) => occurrence.id),
  );
  io.asked[2]!.answer(true);
  io.asked[3]!.answer(false);
  await until("both to be settled", () => io.rows.open().every(({ state }) => state === "running"));
  expect(io.all(wanted.id)).toMatchObject([{ state: "running", message: "m_0" }]);
  expect(io.all(unwanted.id)).toMatchObject([{ state: "missed", message: null }]);
});

test("what is older than its age is not done", async () => {
  const io = world();
  await io.start();
  const { id } = io.add({ when: "daily 09:00", text: "look", tz: "UTC", maxAge: "2h" });
  await io.restart(12 * HOUR);
  expect(io.all(id)).toMatchObject([{ state: "missed", reason: "IO was not running, and it is older than 2h" }]);
});

test("a machine that slept is told from a daemon that did not run", async () => {
  const io = world();
  await io.start();
  const { id } = io.add({ when: "every 10m", text: "look" });
  await io.pass(25 * MINUTE, { asleep: true });
  expect(io.all(id)).toMatchObject([
    { state: "missed", reason: "the machine slept, or its clock was set forward" },
    { state: "running", reason: "done late: the machine slept, or its clock was set forward" },
  ]);
});

test("a clock that is set back does nothing twice, and intervals go on at once", async () => {
  const io = world();
  await io.start();
  const daily = io.add({ when: "daily 00:01", text: "look", tz: "UTC" });
  const often = io.add({ when: "every 1m", text: "look" });
  await io.pass(MINUTE);
  io.end("m_0");
  io.end("m_1");
  expect(io.sent).toHaveLength(2);
  io.setClock(-2 * HOUR);
  await io.pass(1_000);
  await io.pass(MINUTE);
  expect(io.all(often.id)).toHaveLength(2);
  await io.pass(2 * HOUR);
  expect(io.all(daily.id)).toHaveLength(1);
  expect(new Set(io.all(often.id).map(({ dueAt }) => dueAt)).size).toBe(io.all(often.id).length);
});

test("a schedule that fails three times in a row is paused and says why; once it has succeeded, the count begins anew", async () => {
  const io = world();
  await io.start();
  const { id } = io.add({ when: "every 1m", text: "look" });
  for (const [at, status] of ["failed", "failed", "done", "failed", "failed", "failed"].entries()) {
    await io.pass(MINUTE);
    io.end(`m_${at}`, status);
  }
  expect(io.schedules.find(id)).toMatchObject({ state: "paused", nextAt: null, reason: expect.stringContaining("it broke") });
  await io.pass(HOUR);
  expect(io.sent).toHaveLength(6);
  io.schedules.resume(id);
  await io.pass(MINUTE);
  expect(io.sent).toHaveLength(7);
});

test("what cannot be begun is a failed occurrence, and the next one is tried", async () => {
  const io = world();
  await io.start();
  const { id } = io.add({ when: "every 1m", text: "look" });
  io.refuse("There is no such squad.");
  await io.pass(MINUTE);
  io.refuse(undefined);
  await io.pass(MINUTE);
  expect(io.all(id)).toMatchObject([{ state: "failed", reason: "There is no such squad." }, { state: "running" }]);
});

test("a single time is done once, and the schedule is then done", async () => {
  const io = world();
  await io.start();
  const { id } = io.add({ when: "in 20m", text: "look" });
  await io.pass(20 * MINUTE);
  io.end("m_0");
  await io.pass(DAY);
  expect(io.schedules.find(id)).toMatchObject({ state: "done", nextAt: null });
  expect(states(io.all(id))).toEqual(["done"]);
});

test("by hand it is done besides its times; paused it is not due, and resumed it makes nothing up", async () => {
  const io = world();
  await io.start();
  const { id, nextAt } = io.add({ when: "daily 09:00", text: "look", tz: "UTC" });
  expect(io.schedules.runNow(id)).toMatchObject({ state: "running", message: "m_0", reason: "asked for by hand" });
  expect(() => io.schedules.runNow(id)).toThrow("under way");
  expect(io.schedules.find(id).nextAt).toBe(nextAt);
  io.end("m_0");
  expect(io.schedules.pause(id)).toMatchObject({ state: "paused", nextAt: null });
  expect(() => io.schedules.pause(id)).toThrow("paused already");
  await io.pass(3 * DAY);
  io.schedules.resume(id);
  await io.schedules.look();
  expect(io.sent).toHaveLength(1);
  io.schedules.remove(id);
  expect(() => io.schedules.find(id)).toThrow("There is no schedule");
});

test("a run that was about to be started when the daemon ended is started under the same id, one that is there is not", async () => {
  const io = world();
  await io.start();
  const { id } = io.add({ when: "every 1m", text: "build", swarm: "/x" });
  await io.pass(MINUTE);
  await until("the run", () => io.runs.length === 1);
  await io.restart(1_000);
  await until("the run again", () => io.runs.length === 2);
  expect(io.runs[1]).toBe(io.runs[0]);
  io.known.add(io.runs[0]!);
  await io.restart(1_000);
  expect(io.runs).toHaveLength(2);
  expect(io.all(id)).toHaveLength(1);
});

test("a thousand that are due in one second are each sent once, and nobody waits long for the thread", async () => {
  const io = world();
  await io.start();
  for (let at = 0; at < 1_000; at += 1) io.add({ when: "daily 09:00", text: `look ${at}`, tz: "UTC" });
  let [most, before, isOver] = [0, 0, false];
  const watch = () => {
    most = Math.max(most, io.sent.length - before);
    before = io.sent.length;
    if (!isOver) setImmediate(watch);
  };
  watch();
  io.setClock(Date.parse("2026-01-01T09:00:00Z") - Date.parse(io.iso()));
  await io.schedules.look();
  isOver = true;
  expect(new Set(io.sent.map(({ schedule }) => schedule)).size).toBe(1_000);
  expect(io.sent).toHaveLength(1_000);
  // Whoever else wants the thread has a turn after a few of them.
  expect(most).toBeLessThanOrEqual(50);
});

test("a model makes a hundred schedules at most that are still to come, a person many more", async () => {
  const io = world();
  await io.start();
  const byModel = () => io.schedules.add({ when: "in 20m", text: "look" }, { ...MAKER, by: "model" });
  const made = Array.from({ length: 100 }, byModel);
  expect(byModel).toThrow("100 schedules that models made");
  io.add({ when: "in 20m", text: "by hand" });
  io.schedules.remove(made[0]!.id);
  byModel();
  expect(byModel).toThrow("schedule_remove");
  // What is over makes room.
  await io.pass(20 * MINUTE);
  byModel();
});

/** A generator of the same numbers for the same seed. */
function random(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2 ** 31;
    return state / 2 ** 31;
  };
}

test.each([1, 2, 3, 4])(
  "in a month with sleep, kills, and clocks that are changed for summer, every occurrence is accounted for once (seed %i)",
  async (seed) => {
    const io = world("2026-03-10T00:00:30Z");
    await io.start();
    const next = random(seed);
    const made = [
      io.add({ when: "every 37m", text: "a" }),
      io.add({ when: "daily 02:30", text: "b", tz: "Europe/Berlin" }),
      io.add({ when: "15 */3 * * 1-5", text: "c", tz: "America/New_York", catchUp: "skip" }),
    ];
    const begun = Date.parse(io.iso());
    const monthLater = begun + 31 * DAY;
    for (let message = 0; Date.parse(io.iso()) < monthLater; ) {
      const what = next();
      const ms = Math.floor((what < 0.9 ? 40 * MINUTE : 9 * HOUR) * next()) + 1_000;
      if (what < 0.85) await io.pass(ms);
      else if (what < 0.95) await io.pass(ms, { asleep: true });
      else await io.restart(ms);
      for (; message < io.sent.length; message += 1) io.end(`m_${message}`);
    }
    const end = Date.parse(io.iso());
    // Told apart from what IO computes: each minute of the month is looked at by the clocks of the zone.
    const clockOf = (tz: string) =>
      new Intl.DateTimeFormat("en-GB", { timeZone: tz, weekday: "short", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
    const [berlin, york] = [clockOf("Europe/Berlin"), clockOf("America/New_York")];
    const expected: string[][] = [[], [], []];
    for (let at = begun + 37 * MINUTE; at <= end; at += 37 * MINUTE) expected[0]!.push(new Date(at).toISOString());
    for (let at = Math.ceil(begun / MINUTE) * MINUTE; at <= end; at += MINUTE) {
      const [day = "", time = ""] = york.format(at).split(" ");
      if (!/S/.test(day.slice(0, 1)) && /^(?:00|03|06|09|12|15|18|21):15$/.test(time))
        expected[2]!.push(new Date(at).toISOString());
      const isSkipped = new Date(at).toISOString() === "2026-03-29T01:30:00.000Z";
      if (berlin.format(at).endsWith("02:30") || isSkipped) expected[1]!.push(new Date(at).toISOString());
    }
    for (const [index, { id }] of made.entries()) {
      const found = io.all(id);
      expect(found.map(({ dueAt }) => dueAt)).toEqual(expected[index]);
      expect(found.every(({ state }) => state !== "waiting")).toBe(true);
    }
    expect(new Set(io.sent.map(({ occurrence }) => occurrence)).size).toBe(io.sent.length);
  },
);
