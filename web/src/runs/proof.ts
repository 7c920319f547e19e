import type { Run } from "../../../src/protocol/runs.ts";
import { plural } from "../lib/plural.ts";

/**
 * What a run's result is based on, in one line: its checks, whether they notice the change, and its approvals. A run that ended
 * without a result says where it stopped instead.
 */
export function proofOf({ outcome, evidence, tree, loops, status, phases }: Run): string {
  if (status === "running") return "under way";
  if (outcome === null || outcome === "failed" || outcome === "cancelled") {
    const last = phases.findLast((phase) => phase.status !== "done" && phase.status !== "skipped");
    return last === undefined ? status : `stopped in ${last.name}`;
  }
  const last = new Map(evidence.filter((check) => tree === null || check.tree === tree).map((check) => [check.command, check]));
  const checks = [...last.values()];
  const passed = checks.filter(({ verdict, exitCode }) => (verdict === undefined ? exitCode === 0 : verdict === "passed"));
  const approvals = loops.filter((loop) => loop.outcome === "approved").length;
  const parts = [
    checks.length === 0 ? "no check ran on the result" : `${passed.length} of ${plural(checks.length, "check")} passed`,
    ...noticing(passed.filter(({ bound }) => bound === true).length, checks.length),
    ...(approvals > 0 ? [`approved by ${plural(approvals, "reviewer")}`] : []),
  ];
  return parts.join(" · ");
}

/** How many of the passed checks would have failed without the change. */
function noticing(count: number, all: number): string[] {
  if (count === 0) return [];
  if (all === 1) return ["it notices the change"];
  return [count === 1 ? "1 of them notices the change" : `${count} of them notice the change`];
}
