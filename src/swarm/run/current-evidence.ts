import type { CheckEvidence, Run } from "../../protocol/runs.ts";

/**
 * What the checks say of a run's result: of exactly its tree; where a command changed the tree in place after they ran, the
 * latest word of each check.
 */
export function currentEvidence({ evidence }: Pick<Run, "evidence">, tree: string | null): CheckEvidence[] {
  const exact = evidence.filter((each) => each.tree === tree);
  return exact.length > 0 ? exact : [...new Map(evidence.map((each) => [each.name, each])).values()];
}
