import { checkWords, isProof, verdictOf } from "../../protocol/check-words.ts";
import type { CheckEvidence } from "../../protocol/runs.ts";

const inWords = (each: CheckEvidence) =>
  each.bound === false && verdictOf(each) === "passed" ? "passes on broken code too, so it is no evidence" : checkWords(each);
const isTest = ({ name, command }: CheckEvidence) => /^test\b/.test(name) || /\btests?\b/.test(command);

/**
 * Why the result counts as untested: no check that could notice the change came to a verdict. If the project has tests, a linter
 * or build that noticed broken code does not make up for tests that did not.
 */
export function whyUntested(evidence: readonly CheckEvidence[]): string | undefined {
  if (evidence.length === 0) return "the project has no checks, so nothing was tested";
  const blindTests = evidence.filter((each) => each.bound === false && isTest(each));
  const proofs = evidence.filter(isProof);
  if (proofs.length > 0 && (blindTests.length === 0 || proofs.some(isTest))) return undefined;
  // One fault often stops several checks, and is said once.
  const faults = new Map<string, string[]>();
  for (const each of evidence) faults.set(inWords(each), [...(faults.get(inWords(each)) ?? []), `"${each.name}"`]);
  const told = [...faults].map(([words, names]) => `${names.length > 1 ? "each of " : ""}${names.join(", ")} ${words}`);
  return `no check that could notice the change came to a verdict: ${told.join("; ")}`;
}
