import type { CheckEvidence, Run } from "../../protocol/runs.ts";

/** The checks of exactly this tree or, if a command changed it in place after they ran, the latest result of each check. */
export function currentEvidence({ evidence }: Pick<Run, "evidence">, tree: string | null): CheckEvidence[] {
  const exact = evidence.filter((each) => each.tree === tree);
  return exact.length > 0 ? exact : [...new Map(evidence.map((each) => [each.name, each])).values()];
}
