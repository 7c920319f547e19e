import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { LoopOutcome } from "../../src/protocol/runs.ts";
import { readRunSettings } from "../../src/swarm/pipeline/settings.ts";
import { exitCodeOf } from "../../src/swarm/run/swarm.ts";
import { play, type Script, startSwarm, task } from "../support/swarm/index.ts";

/** A pipeline with every kind of loop. The named loop fails the run if its iterations are exhausted. */
const pipeline = (mustNotRunOut = "") => {
  const loop = (agent: string, keyword: string) =>
    `agent: ${agent}, maxIterations: 1, approvalKeyword: ${keyword}${agent === mustNotRunOut ? ", onExhausted: fail" : ""}`;
  return `
pipeline:
  - phase: spec
    agent: pm
    reviews: [{${loop("pm-reviewer", "APPROVED")}}, {${loop("eng-spec-reviewer", "APPROVED")}}]
  - {phase: decompose, agent: pm}
  - {phase: design, condition: hasFrontendTasks, agent: designer, reviews: [{${loop("design-reviewer", "APPROVED")}}]}
  - phase: implement
    parallel: true
    agent: engineer
    reviews: [{${loop("eng-code-reviewer", "APPROVED")}}]
    qa: {${loop("tester", "ALL_PASSED")}}
  - {phase: cross-model-review, condition: differentReviewModel, fixAgent: engineer, ${loop("cross-model-reviewer", "APPROVED")}}
`;
};
const MODELS = { PRIMARY_MODEL: "writer", REVIEW_MODEL: "critic", MAX_RETRIES: "1" };
const frontend: Script = ({ role, prompt }) =>
  role === "pm" && prompt.includes("Reply with a JSON array")
    ? { say: JSON.stringify([task("T1", "[FRONTEND] A page")]) }
    : undefined;
const rejecting =
  (role: string): Script =>
  (told) =>
    told.role === role ? { say: "1. Not like this." } : frontend(told);
const silent =
  (role: string): Script =>
  (told) =>
    told.role === role && !told.prompt.includes("JSON array") ? { empty: true } : frontend(told);

interface Loop {
  reviewer: string;
  key: string;
  /** Settings in which this loop is skipped, and how the run ends then. */
  skipped: { script?: Script; mustNotRunOut?: string; env?: NodeJS.ProcessEnv; exitCode: number };
}

const LOOPS: Loop[] = [
  { reviewer: "pm-reviewer", key: "spec/review:pm-reviewer", skipped: { script: silent("pm"), exitCode: 1 } },
  {
    reviewer: "eng-spec-reviewer",
    key: "spec/review:eng-spec-reviewer",
    skipped: { script: rejecting("pm-reviewer"), mustNotRunOut: "pm-reviewer", exitCode: 3 },
  },
  {
    reviewer: "design-reviewer",
    key: "design/review:design-reviewer",
    skipped: { script: () => undefined, exitCode: 0 },
  },
  {
    reviewer: "eng-code-reviewer",
    key: "implement/stream-1/review:eng-code-reviewer",
    skipped: { script: silent("engineer"), exitCode: 1 },
  },
  {
    reviewer: "tester",
    key: "implement/stream-1/qa:tester",
    skipped: { script: rejecting("eng-code-reviewer"), mustNotRunOut: "eng-code-reviewer", exitCode: 3 },
  },
  {
    reviewer: "cross-model-reviewer",
    key: "cross-model-review/review:cross-model-reviewer",
    skipped: { env: { ...MODELS, REVIEW_MODEL: "writer" }, exitCode: 0 },
  },
];

describe.each(LOOPS)("the loop of $reviewer", ({ reviewer, key, skipped }) => {
  test("ends approved, exhausted, failed or skipped, and the exit code and the summary say so", async () => {
    const { swarm, project, model } = await startSwarm();
    const end = async (script: Script = frontend, mustNotRunOut?: string, env: NodeJS.ProcessEnv = MODELS) => {
      writeFileSync(join(project, "swarm.config.yaml"), pipeline(mustNotRunOut));
      model.play(play(script));
      const run = await (await swarm.start({ projectPath: project, issue: "A page", settings: readRunSettings(env) })).finished;
      const summary = readFileSync(join(project, "doc", "swarm-summary.md"), "utf8");
      const { outcome, reviews, revisions } = run.loops.find((each) => each.key === key)!;
      expect(summary.split("\n").find((line) => line.includes(key))).toContain(outcome);
      return { loop: [outcome, reviews, revisions] as [LoopOutcome, number, number], exitCode: exitCodeOf(run), run };
    };
    expect(await end()).toMatchObject({ loop: ["approved", 1, 0], exitCode: 0, run: { outcome: "approved" } });
    expect(await end(rejecting(reviewer))).toMatchObject({ loop: ["exhausted", 2, 1], exitCode: 3, run: { status: "done" } });
    expect(await end(rejecting(reviewer), reviewer)).toMatchObject({
      loop: ["exhausted", 2, 1],
      exitCode: 3,
      run: { status: "failed", outcome: "unapproved", reason: expect.stringContaining(reviewer) },
    });
    expect(await end(silent(reviewer))).toMatchObject({ loop: ["failed", 1, 0], exitCode: 3, run: { status: "done" } });
    const left = await end(skipped.script, skipped.mustNotRunOut, skipped.env);
    expect(left).toMatchObject({ loop: ["skipped", 0, 0], exitCode: skipped.exitCode });
  }, 60_000);
});
