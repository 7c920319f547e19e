import { type Script, sh, task } from "./index.ts";

/** A pipeline that plans, builds and reviews twice, the second time on top of the first. */
export const TWICE = `
primaryModel: scripted
reviewModel: another
pipeline:
  - {phase: spec, agent: pm, reviews: [{agent: pm-reviewer, maxIterations: 1, approvalKeyword: APPROVED}]}
  - {phase: decompose, agent: pm}
  - {phase: implement, parallel: true, agent: engineer, reviews: [{agent: eng-code-reviewer, maxIterations: 1, approvalKeyword: APPROVED}]}
  - {phase: cross-model-review, agent: cross-model-reviewer, fixAgent: engineer, maxIterations: 1, approvalKeyword: APPROVED}
  - {phase: spec, agent: pm, reviews: [{agent: pm-reviewer, maxIterations: 1, approvalKeyword: APPROVED}]}
  - {phase: decompose, agent: pm}
  - {phase: implement, parallel: true, agent: engineer, reviews: [{agent: eng-code-reviewer, maxIterations: 1, approvalKeyword: APPROVED}]}
  - {phase: cross-model-review, agent: cross-model-reviewer, fixAgent: engineer, maxIterations: 1, approvalKeyword: APPROVED}
`;

/** Builds T1 first, then T1 and T2 of a second list on top of that. Both cross-model reviews find something once. */
export const twice: Script = ({ role, prompt, afterTool }) => {
  const later = prompt.includes("worked on before");
  if (role === "pm" && prompt.includes("Reply with a JSON array"))
    return {
      say: JSON.stringify(later ? [task("T1", "Second, one"), task("T2", "Second, two")] : [task("T1", "First")]),
    };
  if (role === "pm" && later) return { say: "# Spec two\n\nMore.\n\n## Decisions\n\n- Two files" };
  if (role === "cross-model-reviewer" && !prompt.includes("Your earlier findings"))
    return { say: prompt.includes("second-one.txt") ? "Mend the second." : "Mend the first." };
  if (role !== "engineer" || afterTool) return undefined;
  if (prompt.includes("Mend the second")) return sh("test -f mended.txt && echo again >> mended.txt");
  if (prompt.includes("Mend the first")) return sh("echo mended > mended.txt");
  if (prompt.includes("T1: Second, one")) return sh("test -f first.txt && test -f mended.txt && echo one > second-one.txt");
  if (prompt.includes("T2: Second, two")) return sh("test -f first.txt && test -f mended.txt && echo two > second-two.txt");
  return sh("echo first > first.txt");
};
