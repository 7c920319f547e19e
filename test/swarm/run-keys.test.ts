import { expect, test } from "vitest";
import { git, type Script, sh, startSwarm, task, taskIn } from "../support/swarm/index.ts";

const YAML = `
primaryModel: scripted
reviewModel: another
checks: ["test ! -f broken"]
pipeline:
  - {phase: spec, agent: pm, reviews: [{agent: pm-reviewer, maxIterations: 1, approvalKeyword: APPROVED, clarificationKeyword: ASK, clarificationAgent: pm}]}
  - {phase: decompose, agent: pm}
  - {phase: design, agent: designer, condition: hasFrontendTasks, clarificationAgent: pm, reviews: [{agent: design-reviewer, maxIterations: 1, approvalKeyword: APPROVED}]}
  - phase: implement
    parallel: true
    agent: engineer
    reviews: [{agent: eng-code-reviewer, maxIterations: 1, approvalKeyword: APPROVED}, {agent: eng-code-reviewer, maxIterations: 1, approvalKeyword: APPROVED}]
    qa: {agent: tester, maxIterations: 1, approvalKeyword: ALL_PASSED}
  - {phase: cross-model-review, agent: cross-model-reviewer, fixAgent: engineer, maxIterations: 1, approvalKeyword: APPROVED}
`;

/** Two tasks that change the same line, and one question and one rejection of each kind. */
const script: Script = ({ role, prompt, afterTool, before }) => {
  const first = before === 0;
  if (role === "pm" && prompt.includes("JSON array"))
    return { say: before === 3 ? "No list." : JSON.stringify([task("T1", "[FRONTEND] A button"), task("T2", "A word")]) };
  if (role === "pm-reviewer" && first) return { say: "Which?\n\nASK" };
  if (role === "designer" && first) return { say: "Which colour?\n\nCLARIFICATION_NEEDED" };
  if (role === "cross-model-reviewer" && first) return { say: "Mend it." };
  if (role === "tester" && prompt.includes("T2:") && !prompt.includes("Your earlier findings"))
    return { say: "It does not work." };
  if (role !== "engineer") return undefined;
  if (afterTool) return { say: "Done." };
  if (prompt.includes("conflict markers")) return sh("printf 'both\\n' > line.txt");
  if (prompt.includes("Findings of")) return sh(`date +%N >> fix-${taskIn(prompt)}.txt`);
  const afterTheOther =
    taskIn(prompt) === "T2" ? "until git log --all --format=%s | grep -q 'Merge stream 1'; do sleep 0.05; done; " : "";
  return sh(`${afterTheOther}printf '${taskIn(prompt)}\\n' > line.txt`);
};

test("a whole run writes its steps under the names that every version has given them", { timeout: 120_000 }, async () => {
  const { swarm, store, project, settings } = await startSwarm({
    script,
    files: { "swarm.config.yaml": YAML, "line.txt": "before\n" },
    env: { MAX_RETRIES: "3" },
  });
  const run = await (await swarm.start({ projectPath: project, issue: "Do it", settings, apply: true })).finished;
  expect(run).toMatchObject({ status: "done", outcome: "approved", applied: true });
  expect(git(project, "show", "HEAD:line.txt")).toBe("both");
  const rows = store.db.prepare("SELECT key FROM run_steps WHERE run_id = ?").all(run.id) as { key: string }[];
  const keys = rows.map(({ key }) => key.replace(/[0-9a-f]{12}$/, "<hash>"));
  expect([...new Set(keys)].sort()).toEqual([
    "cross-model-review/again/qa:tester/1",
    "cross-model-review/again/qa:tester/1/after",
    "cross-model-review/again/review:eng-code-reviewer/1",
    "cross-model-review/again/review:eng-code-reviewer~2/1",
    "cross-model-review/review:cross-model-reviewer/1",
    "cross-model-review/review:cross-model-reviewer/1/commit",
    "cross-model-review/review:cross-model-reviewer/1/fix:engineer",
    "cross-model-review/review:cross-model-reviewer/2",
    "decompose/tasks:pm/1",
    "decompose/tasks:pm/2",
    "design/draft:designer",
    "design/draft:designer/answered/1",
    "design/draft:designer/clarify/1",
    "design/review:design-reviewer/1",
    "implement/result",
    "implement/stream-1/checks/<hash>",
    "implement/stream-1/commit/1",
    "implement/stream-1/draft",
    "implement/stream-1/merge/1",
    "implement/stream-1/open",
    "implement/stream-1/qa:tester/1",
    "implement/stream-1/qa:tester/1/tidy",
    "implement/stream-1/review:eng-code-reviewer/1",
    "implement/stream-1/review:eng-code-reviewer~2/1",
    "implement/stream-2/checks/<hash>",
    "implement/stream-2/commit/1",
    "implement/stream-2/commit/2",
    "implement/stream-2/commit/3",
    "implement/stream-2/conflict/1",
    "implement/stream-2/conflict/1/settle/1",
    "implement/stream-2/draft",
    "implement/stream-2/merge/1",
    "implement/stream-2/merge/2",
    "implement/stream-2/open",
    "implement/stream-2/qa:tester/1",
    "implement/stream-2/qa:tester/1/fix:engineer",
    "implement/stream-2/qa:tester/1/tidy",
    "implement/stream-2/qa:tester/2",
    "implement/stream-2/qa:tester/2/tidy",
    "implement/stream-2/qa:tester/3",
    "implement/stream-2/qa:tester/3/tidy",
    "implement/stream-2/review:eng-code-reviewer/1",
    "implement/stream-2/review:eng-code-reviewer/2",
    "implement/stream-2/review:eng-code-reviewer/3",
    "implement/stream-2/review:eng-code-reviewer~2/1",
    "implement/stream-2/review:eng-code-reviewer~2/2",
    "implement/stream-2/review:eng-code-reviewer~2/3",
    "implement/turn/1",
    "implement/turn/2",
    "loop:cross-model-review/again/qa:tester",
    "loop:cross-model-review/again/review:eng-code-reviewer",
    "loop:cross-model-review/again/review:eng-code-reviewer~2",
    "loop:cross-model-review/review:cross-model-reviewer",
    "loop:design/review:design-reviewer",
    "loop:implement/stream-1/qa:tester",
    "loop:implement/stream-1/review:eng-code-reviewer",
    "loop:implement/stream-1/review:eng-code-reviewer~2",
    "loop:implement/stream-2/qa:tester",
    "loop:implement/stream-2/review:eng-code-reviewer",
    "loop:implement/stream-2/review:eng-code-reviewer~2",
    "loop:spec/review:pm-reviewer",
    "note:<hash>",
    "phase:cross-model-review",
    "phase:decompose",
    "phase:design",
    "phase:implement",
    "phase:spec",
    "run/apply",
    "run/base",
    "run/baseline",
    "run/checkout",
    "run/checks/<hash>",
    "run/commits",
    "run/decisions",
    "run/summary",
    "run/trial",
    "spec/draft:pm",
    "spec/review:pm-reviewer/1",
    "spec/review:pm-reviewer/1/clarify",
    "spec/review:pm-reviewer/1/revise:pm",
    "spec/review:pm-reviewer/2",
    "stream:1",
    "stream:2",
  ]);
});
