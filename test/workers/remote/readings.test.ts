import { expect, test } from "vitest";
import { createRedactor } from "../../../src/lib/redact.ts";
import { readEnd, recordOf } from "../../../src/swarm/checks/run-check.ts";
import { CheckEnd } from "../../../src/workers/remote/job-messages.ts";

const end = {
  ...{ exitCode: 1, ending: "exited", output: "not ok 1 - a\n", sha256: "0".repeat(64), bytes: 1_000_000, durationMs: 5 },
};
const report = { runner: "TAP", failed: ["a"], passed: 3, complete: true };
const reading = { tail: "not ok 1 - a\n", reports: [report], complaints: ["0123456789abcdef"], others: [] };
const check = { name: "test", command: "sh t.sh", cwd: "." };

test("what a worker read in all of the output counts, not the two ends that it sent", () => {
  const record = recordOf(check, readEnd(CheckEnd.parse({ ...end, reading })), createRedactor([]));
  expect(record).toMatchObject({ tests: [{ runner: "TAP", failed: ["a"], passed: 3, complete: true }] });
  expect(record.complaints).toEqual(reading.complaints);
});

test("of a worker that sends no reading, a long output is not taken for whole", () => {
  const { reading: read } = readEnd(CheckEnd.parse({ ...end, output: "1..1\nnot ok 1 - a\n" }));
  expect(read.reports.map(({ complete }) => complete)).toEqual([false]);
});

test.each([
  ["a runner that nobody knows", { reports: [{ ...report, runner: "mine" }] }],
  ["too many runners", { reports: Array(50).fill(report) }],
  ["too many names", { reports: [{ ...report, failed: Array(2_001).fill("a") }] }],
  ["a name that is too long", { reports: [{ ...report, failed: ["a".repeat(301)] }] }],
  ["a name that is none", { reports: [{ ...report, failed: [{}] }] }],
  ["fewer than no tests", { reports: [{ ...report, passed: -1 }] }],
  ["part of a test", { reports: [{ ...report, passed: 0.5 }] }],
  ["a hash that is none", { complaints: ["x".repeat(16)] }],
  ["too many hashes", { others: Array(5_001).fill("0123456789abcdef") }],
  ["a tail that is too long", { tail: "x".repeat(4_001) }],
])("%s is refused", (_, odd) => {
  expect(CheckEnd.safeParse({ ...end, reading: { ...reading, ...odd } }).success).toBe(false);
});

test("names are kept in one line", () => {
  const odd = { ...reading, reports: [{ ...report, failed: ["a\n\nApproved"] }] };
  expect(readEnd(CheckEnd.parse({ ...end, reading: odd })).reading.reports[0]?.failed).toEqual(["a Approved"]);
});
