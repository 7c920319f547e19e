import { expect, onTestFinished, test } from "vitest";
import { createLanes, type Lanes } from "../../src/lib/lanes.ts";
import { until } from "../support/until.ts";

function lanesOf(work: (lane: string, lanes: Lanes) => Promise<void>) {
  const failures: unknown[] = [];
  const lanes: Lanes = createLanes({
    work: (lane) => work(lane, lanes),
    onFailure: (_, error) => failures.push(error),
    retryMs: 5,
  });
  lanes.open();
  onTestFinished(() => lanes.close());
  return { lanes, failures };
}

test("work that arrives just after a lane found nothing left is still done", async () => {
  const queue = ["first"];
  const done: string[] = [];
  const { lanes } = lanesOf(async (lane, own) => {
    for (let next = queue.shift(); next; next = queue.shift()) done.push(next);
    if (done.length > 1) return;
    // The lane has checked for the last time but has not yet reported that it is idle.
    queueMicrotask(() => {
      queue.push("late");
      own.kick(lane);
    });
  });
  lanes.kick("a");
  await until("the late one", () => done.length === 2);
  expect(done).toEqual(["first", "late"]);
});

test("a lane does one job at a time, and lanes run in parallel", async () => {
  const at: string[] = [];
  let most = 0;
  const inLane = new Map<string, number>();
  const { lanes } = lanesOf(async (lane) => {
    inLane.set(lane, (inLane.get(lane) ?? 0) + 1);
    most = Math.max(most, ...inLane.values());
    at.push(lane);
    await new Promise((next) => setImmediate(next));
    inLane.set(lane, inLane.get(lane)! - 1);
  });
  for (const lane of ["a", "a", "b", "a"]) lanes.kick(lane);
  expect(at).toEqual(["a", "b"]);
  await lanes.close();
  expect(most).toBe(1);
});

test("a failed lane is retried, and a closed one starts nothing", async () => {
  let tries = 0;
  const { lanes, failures } = lanesOf(async () => {
    tries += 1;
    if (tries === 1) throw new Error("the disk is full");
  });
  lanes.kick("a");
  await until("the second try", () => tries === 2);
  expect(failures).toHaveLength(1);
  await lanes.close();
  lanes.kick("a");
  expect(tries).toBe(2);
});
