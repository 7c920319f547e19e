import { expect, test } from "vitest";
import { checksVerdict } from "../../src/protocol/check-words.ts";
import type { CheckEvidence, CheckVerdict } from "../../src/protocol/runs.ts";

const checked = (verdict: CheckVerdict, bound?: boolean): CheckEvidence => ({
  name: "tests",
  command: "npm test",
  exitCode: verdict === "passed" ? 0 : 1,
  ending: "exited",
  tree: "0".repeat(40),
  sha256: "0".repeat(64),
  tail: "",
  bytes: 0,
  durationMs: 1,
  at: "2026-11-19T08:00:00.000Z",
  verdict,
  ...(bound !== undefined && { bound }),
});
const passes = checked("passed");
const fails = checked("failed");
const unable = checked("could not run");

test.each<[string, CheckEvidence[]]>([
  ["no checks", []],
  ["passed", [passes]],
  ["passed", [checked("passed", false), checked("passed", true)]],
  ["passed, no evidence", [checked("passed", false)]],
  ["failed", [passes, fails, unable]],
  ["no check could run", [unable]],
  ["no check could run", [unable, unable]],
  ["1 of 2 checks could not run", [passes, unable]],
  ["2 of 3 checks could not run", [unable, checked("as before"), unable]],
  ["nothing new fails", [passes, checked("as before")]],
  ["nothing new fails", [checked("flaky")]],
])("%s", (words, evidence) => {
  expect(checksVerdict(evidence)).toBe(words);
});
