import type { CheckEvidence, CheckVerdict } from "./runs.ts";

/** A check's verdict, also of one that an earlier version recorded. */
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

/** Whether nothing of it is held against the work. */
export function isHeldAgainst(evidence: CheckEvidence): boolean {
  return verdictOf(evidence) === "failed";
}

/** Whether it could notice a change, and came to a verdict about this one. */
export function isProof(evidence: CheckEvidence): boolean {
  const verdict = verdictOf(evidence);
  return evidence.bound !== false && (verdict === "passed" || verdict === "flaky" || verdict === "as before");
}

/** A check in words: its verdict, why, and what that is worth. The same in every channel. */
export function checkWords(evidence: CheckEvidence): string {
  const verdict = verdictOf(evidence);
  const why = evidence.why ? `: ${evidence.why}` : "";
  const worth = verdict === "passed" && evidence.bound === false ? " (no evidence: it also passes when the code is broken)" : "";
  const ranWith = evidence.ranWith ? ` (${evidence.ranWith})` : "";
  const changed = evidence.changed ? ` (it changed files while it checked: ${evidence.changed.join(", ")})` : "";
  return `${verdict}${why}${worth}${ranWith}${changed}`;
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
