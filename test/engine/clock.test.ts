import { expect, test } from "vitest";
import { createTurnClock } from "../../src/engine/sessions/clock.ts";
import { until } from "../support/until.ts";

/** A countdown that is restarted every 10 ms until `silent` is called. */
function kept(ms: number) {
  const clock = createTurnClock();
  const ended: number[] = [];
  const countdown = clock.countdown(ms, () => ended.push(performance.now()));
  let startedAt = 0;
  const start = () => {
    startedAt = performance.now();
    countdown.start();
  };
  start();
  const signs = setInterval(start, 10);
  return { clock, countdown, ended, startedAt: () => startedAt, silent: () => clearInterval(signs) };
}

test("a countdown that is begun anew again and again ends only after the last time", async () => {
  const { ended, startedAt, silent } = kept(400);
  const begun = startedAt();
  await until("far more than its time", () => startedAt() - begun > 900);
  expect(ended).toEqual([]);
  silent();
  await until("its end", () => ended.length > 0);
  expect(ended[0]! - startedAt()).toBeGreaterThan(390);
});

test("one that was paused goes on with what was left, and begun anew it has all of its time", async () => {
  const { clock, countdown, ended, startedAt, silent } = kept(1_500);
  silent();
  await until("a part of its time", () => performance.now() - startedAt() > 300);
  const goOn = clock.pause();
  const paused = performance.now();
  await until("more than its time", () => performance.now() - paused > 1_600);
  expect(ended).toEqual([]);
  goOn();
  countdown.start();
  const again = performance.now();
  await until("its end", () => ended.length > 0);
  expect(ended[0]! - again).toBeGreaterThan(1_490);
  countdown.start();
  countdown.stop();
  const stopped = performance.now();
  await until("more than its time again", () => performance.now() - stopped > 1_600);
  expect(ended).toHaveLength(1);
});
