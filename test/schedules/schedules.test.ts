import { expect, test } from "vitest";
import type { Occurrence } from "../../src/protocol/schedules.ts";
import { DAY, HOUR, MAKER, MINUTE, scheduleWorld as world } from "../support/schedule-world.ts";
import { until } from "../support/until.ts";

const states = (occurrences: Occurrence[]) => occurrences.map(({ state }) => state);

test("every occurrence has a row, is sent once, and ends with its message", async () => {
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

test("an occurrence that is due while the previous one runs is skipped, with the reason", async () => {
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

test("a missed time is asked about once, even across a restart, and runs or is dropped as the person decides", async () => {
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

test("a missed time older than the maximum age does not run", async () => {
  const io = world();
  await io.start();
  const { id } = io.add({ when: "daily 09:00", text: "look", tz: "UTC", maxAge: "2h" });
  await io.restart(12 * HOUR);
  expect(io.all(id)).toMatchObject([{ state: "missed", reason: "IO was not running, and it is older than 2h" }]);
});

test("a sleeping machine and a stopped daemon give different reasons", async () => {
  const io = world();
  await io.start();
  const { id } = io.add({ when: "every 10m", text: "look" });
  await io.pass(25 * MINUTE, { asleep: true });
  expect(io.all(id)).toMatchObject([
    { state: "missed", reason: "the machine slept, or its clock was set forward" },
    { state: "running", reason: "done late: the machine slept, or its clock was set forward" },
  ]);
});

test("setting the clock back runs nothing twice, and intervals continue at once", async () => {
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

test("a schedule that fails three times in a row is paused with the reason; a success resets the count", async () => {
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

test("an occurrence that cannot start has failed, and the next one is tried", async () => {
  const io = world();
  await io.start();
  const { id } = io.add({ when: "every 1m", text: "look" });
  io.refuse("There is no such squad.");
  await io.pass(MINUTE);
  io.refuse(undefined);
  await io.pass(MINUTE);
  expect(io.all(id)).toMatchObject([{ state: "failed", reason: "There is no such squad." }, { state: "running" }]);
});

test("a single time runs once, and then the schedule is done", async () => {
  const io = world();
  await io.start();
  const { id } = io.add({ when: "in 20m", text: "look" });
  await io.pass(20 * MINUTE);
  io.end("m_0");
  await io.pass(DAY);
  expect(io.schedules.find(id)).toMatchObject({ state: "done", nextAt: null });
  expect(states(io.all(id))).toEqual(["done"]);
});

test("a manual run is additional; a paused schedule is not due, and a resumed one catches up on nothing", async () => {
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

test("a run that was not yet started when the daemon ended starts with the same id; an existing run does not start again", async () => {
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

test("a thousand schedules due in the same second are each sent once, without blocking the event loop", async () => {
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
  most = Math.max(most, io.sent.length - before);
  isOver = true;
  expect(new Set(io.sent.map(({ schedule }) => schedule)).size).toBe(1_000);
  expect(io.sent).toHaveLength(1_000);
  // Other work gets a turn after a few of them.
  expect(most).toBeLessThanOrEqual(50);
});

test("models may have at most a hundred pending schedules, people many more", async () => {
  const io = world();
  await io.start();
  const byModel = () => io.schedules.add({ when: "in 20m", text: "look" }, { ...MAKER, by: "model" });
  const made = Array.from({ length: 100 }, byModel);
  expect(byModel).toThrow("100 schedules that models made");
  io.add({ when: "in 20m", text: "by hand" });
  io.schedules.remove(made[0]!.id);
  byModel();
  expect(byModel).toThrow("schedule_remove");
  // Finished schedules do not count.
  await io.pass(20 * MINUTE);
  byModel();
});
