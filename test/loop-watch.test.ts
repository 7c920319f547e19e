import { spawnSync } from "node:child_process";
import { expect, test } from "vitest";
import { watchLoop } from "./support/loop-watch.ts";

/** Runs a program under the loop watch, which starts with the program's first line. Returns the watch's `end`. */
function watched(program: string): () => void {
  const watch = watchLoop();
  watch.begin();
  const { status, stderr } = spawnSync(process.execPath, [...watch.args, "--input-type=module", "--eval", program], {
    env: { PATH: process.env.PATH, ...watch.env },
    encoding: "utf8",
  });
  expect(stderr).toBe("");
  expect(status).toBe(0);
  return watch.end;
}

const WORK =
  "const used = () => process.cpuUsage().user + process.cpuUsage().system; const work = (ms) => { const from = used(); while (used() - from < ms * 1000); };";
const LATER = "await new Promise((later) => setTimeout(later, 100));";

test("a program whose event loop stands still by its own work is told of, however slow the machine is", () => {
  expect(watched(`${WORK} ${LATER} work(2_000); ${LATER}`)).toThrow(/event loop stood still for \d+ ms$/);
});

test("a program that works in pieces, or that waits, is not", () => {
  const pieces = `for (let n = 0; n < 10; n += 1) { work(10); ${LATER} }`;
  expect(watched(`${WORK} ${LATER} ${pieces}`)).not.toThrow();
  expect(watched(`${LATER} Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 800); ${LATER}`)).not.toThrow();
});
