import type { CheckEvidence, CheckVerdict } from "./runs.ts";

/** A check's verdict; works for records of earlier versions too. */
export function verdictOf({
  verdict,
  excused,
  ending,
  exitCode,
  changed,
}: Pick<CheckEvidence, "verdict" | "excused" | "ending" | "exitCode" | "changed">): CheckVerdict {
  if (verdict) return verdict;
  if (excused) return excused === "cannot run" ? "could not run" : "as before";
  return ending === "exited" && exitCode === 0 && changed === undefined ? "passed" : "failed";
}

/** Whether the check counts against the work. */
export function isHeldAgainst(evidence: CheckEvidence): boolean {
  return verdictOf(evidence) === "failed";
}

/** Whether the check would notice a change, and reached a verdict about this one. */
export function isProof(evidence: CheckEvidence): boolean {
  const verdict = verdictOf(evidence);
  return evidence.bound !== false && (verdict === "passed" || verdict === "flaky" || verdict === "as before");
}

/** A check in words, the same in every channel: its verdict, why, and what it is worth. */
export function checkWords(evidence: CheckEvidence): string {
  const verdict = verdictOf(evidence);
  const why = evidence.why ? `: ${evidence.why}` : "";
  const worth = verdict === "passed" && evidence.bound === false ? " (no evidence: it also passes when the code is broken)" : "";
  const ranWith = evidence.ranWith ? ` (${evidence.ranWith})` : "";
  const changed = evidence.changed ? ` (it changed files while it checked: ${evidence.changed.join(", ")})` : "";
  return `${verdict}${why}${worth}${ranWith}${changed}`;
}

/** All checks of a step in a few words. */
export function checksVerdict(evidence: readonly CheckEvidence[]): string {
  if (evidence.length === 0) return "no checks";
  if (evidence.some(isHeldAgainst)) return "failed";
  const verdicts = evidence.map(verdictOf);
  const unable = verdicts.filter((verdict) => verdict === "could not run").length;
  if (unable === evidence.length) return "no check could run";
  if (unable > 0) return `${unable} of ${evidence.length} checks could not run`;
  if (verdicts.some((verdict) => verdict !== "passed")) return "nothing new fails";
  return evidence.some(isProof) ? "passed" : "passed, no evidence";
}

/** All checks of a result in one sentence. */
export function checksInShort(evidence: readonly CheckEvidence[]): string {
  if (evidence.length === 0) return "No checks were found in this project, so none were run.";
  const verdicts = evidence.map(verdictOf);
  if (verdicts.every((verdict) => verdict === "passed"))
    return evidence.some(isProof)
      ? "Every check passed."
      : "Every check passed, but none of them notices when the code is broken.";
  const counts = (["passed", "failed", "flaky", "as before", "could not run"] as const)
    .map((verdict) => ({ verdict, count: verdicts.filter((each) => each === verdict).length }))
    .filter(({ count }) => count > 0)
    .map(({ verdict, count }) => `${count} ${verdict === "as before" ? "failed as before" : verdict}`);
  const failed = verdicts.includes("failed") ? "**A check fails.** " : "";
  return `${failed}Of ${evidence.length} check${evidence.length === 1 ? "" : "s"}: ${counts.join(", ")}.`;
}
