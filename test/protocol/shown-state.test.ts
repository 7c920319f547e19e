import { expect, test } from "vitest";
import { exitCodeIn, type ShownState, type Stateful, showState } from "../../src/protocol/shown-state.ts";
import type { Task } from "../../src/protocol/squads.ts";

const line = (of: Stateful) => {
  const { mark, words }: ShownState = showState(of);
  return `${mark} ${words}`;
};
const task = (status: Task["status"], verdict?: string): Stateful => ({
  kind: "task",
  task: {
    status,
    evidence: { filesChanged: [], commands: [], treeBefore: null, treeAfter: null, ...(verdict !== undefined && { verdict }) },
  },
});
const step = (verdict: string | null, state: "begun" | "done" | "failed" = "done") =>
  ({ kind: "step", step: { state, verdict } }) as const;
const waitsFor = { kind: "approval" as const, approvals: ["abcde"] };
const check = { exitCode: 0, ending: "exited" } as const;

test.each<[Stateful, string]>([
  [{ kind: "message", status: "done" }, "✓ done"],
  [{ kind: "message", status: "failed" }, "✗ failed"],
  [{ kind: "message", status: "cancelled" }, "! cancelled"],
  [{ kind: "call", state: "started" }, "… started"],
  [{ kind: "call", state: "done" }, "✓ done"],
  [{ kind: "call", state: "done", exitCode: 0 }, "✓ exit 0"],
  [{ kind: "call", state: "done", exitCode: 7 }, "✗ exit 7"],
  [{ kind: "call", state: "done", exitCode: null }, "✗ ended by a signal"],
  [{ kind: "call", state: "refused" }, "✗ refused"],
  [{ kind: "call", state: "unknown" }, "! unknown"],
  [{ kind: "check", check }, "✓ exit 0"],
  [{ kind: "check", check: { ...check, exitCode: 7 } }, "✗ exit 7"],
  [{ kind: "check", check: { exitCode: null, ending: "deadline" } }, "✗ deadline"],
  [{ kind: "check", check: { ...check, exitCode: 7, excused: "failed before" } }, "! exit 7, as before"],
  [{ kind: "check", check: { ...check, exitCode: 127, verdict: "could not run" } }, "! exit 127, could not run"],
  [{ kind: "check", check: { ...check, verdict: "flaky" } }, "! exit 0, flaky"],
  [{ kind: "check", check: { ...check, bound: false } }, "! exit 0, did not notice broken code"],
  [step(null), "✓ done"],
  [step("approved"), "✓ approved"],
  [step("3 tasks"), "✓ 3 tasks"],
  [step("rejected"), "✗ rejected"],
  [step("failed"), "✗ failed"],
  [step("conflict"), "✗ conflict"],
  [step("no tasks"), "✗ no tasks"],
  [step("0 tasks"), "! 0 tasks"],
  [step("clarification"), "! clarification"],
  [step("no checks"), "! no checks"],
  [step("no check could run"), "! no check could run"],
  [step("passed, no evidence"), "! passed, no evidence"],
  [step("a verdict that nobody listed"), "! a verdict that nobody listed"],
  [step(null, "failed"), "✗ failed"],
  [{ ...step("approved"), isVoid: true }, "! approved, void"],
  [step(null, "begun"), "… begun"],
  [{ ...step(null, "begun"), run: "cancelled" }, "! cancelled"],
  [{ ...step(null, "begun"), run: "interrupted" }, "! interrupted"],
  [{ ...step(null, "begun"), run: "done" }, "! cut off"],
  [{ kind: "review", outcome: "approved" }, "✓ approved"],
  [{ kind: "review", outcome: "approved", isVoid: true }, "! approved, void"],
  [{ kind: "review", outcome: "exhausted" }, "✗ exhausted"],
  [{ kind: "phase", status: "skipped" }, "· skipped"],
  [{ kind: "stream", status: "cancelled" }, "! cancelled"],
  [{ kind: "run", status: "done", outcome: "approved" }, "✓ approved"],
  [{ kind: "run", status: "done", outcome: "unapproved" }, "✗ unapproved"],
  [{ kind: "run", status: "done", outcome: "unchanged" }, "! unchanged"],
  [{ kind: "run", status: "interrupted", outcome: null }, "! interrupted"],
  [task("done", "done; `npm test` last exited 0"), "✓ done"],
  [task("done", "claimed done; no test command was run"), "! done, unproven"],
  [task("done", "claimed done, but `npm test` last exited 7"), "! done, unproven"],
  [task("done"), "! done, unproven"],
  [{ kind: "task", task: { status: "done", evidence: null } }, "! done, unproven"],
  [task("failed"), "✗ failed"],
  [{ kind: "task", task: { status: "running", evidence: null, waitsFor } }, "? waits for you"],
  [
    { kind: "task", task: { status: "running", evidence: null, waitsFor: { ...waitsFor, kind: "budget" } } },
    "? waits for you (budget)",
  ],
  [{ kind: "task", task: { status: "cancelled", evidence: null, waitsFor } }, "! cancelled"],
  [{ kind: "run", status: "running", outcome: null, waitsFor }, "? waits for you"],
  [{ kind: "run", status: "running", outcome: null }, "… running"],
  [{ kind: "message", status: "running", waitsFor }, "? waits for you"],
])("%o is shown as %s", (of, words) => {
  expect(line(of)).toBe(words);
});

test.each([
  ["exit code: 7\nout", 7],
  ["exit code: 0", 0],
  ["exit code: none (ended by a signal)\nIt printed nothing.", null],
  ["It says exit code: 7", undefined],
  [null, undefined],
])("the exit code in %o is %o", (result, code) => {
  expect(exitCodeIn(result)).toBe(code);
});
