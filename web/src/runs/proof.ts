import type { Run } from "../../../src/protocol/runs.ts";
import { plural } from "../lib/plural.ts";

/** What a run's end rests on, in one line: its checks, whether they notice the change, and who approved it. */
export function proofOf({ outcome, evidence, tree, loops, status }: Run): string {
  if (outcome === null) return status === "running" ? "under way" : status;
  const last = new Map(evidence.filter((check) => tree === null || check.tree === tree).map((check) => [check.command, check]));
  const checks = [...last.values()];
  const passed = checks.filter(({ verdict, exitCode }) => (verdict === undefined ? exitCode === 0 : verdict === "passed"));
  const approvals = loops.filter((loop) => loop.outcome === "approved").length;
  const parts = [
    checks.length === 0 ? "no check ran on the result" : `${passed.length} of ${plural(checks.length, "check")} passed`,
    ...(checks.some(({ bound }) => bound === true) ? ["they notice the change"] : []),
    ...(approvals > 0 ? [`approved by ${plural(approvals, "reviewer")}`] : []),
  ];
  return parts.join(" · ");
}
