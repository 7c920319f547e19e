import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { exitCodeOf } from "../../src/swarm/run/swarm.ts";
import { git, startSwarm } from "../support/swarm/index.ts";

test("the default pipeline turns a request into a reviewed branch and leaves the checkout as it was", async () => {
  const { swarm, project, settings, roles, news, home } = await startSwarm({
    checks: [{ name: "test", command: "test -f T1.txt", cwd: "." }],
  });
  const run = await (await swarm.start({ projectPath: project, issue: "Greet the user", settings })).finished;
  expect(run).toMatchObject({ status: "done", outcome: "approved", reason: null });
  expect(exitCodeOf(run)).toBe(0);
  expect(roles()).toEqual([
    "pm",
    "pm-reviewer",
    "eng-spec-reviewer",
    "pm",
    "engineer",
    "eng-code-reviewer",
    "tester",
    "cross-model-reviewer",
  ]);
  expect(git(project, "show", `${run.branch}:T1.txt`)).toBe("work of T1");
  expect(git(project, "status", "--porcelain", "--", ":!doc")).toBe("");
  expect(git(project, "branch", "--show-current")).toBe("main");
  expect(readdirSync(join(project, "doc")).sort()).toEqual([
    "cross-model-review.md",
    "engineer-stream-1.md",
    "pm-tasks.md",
    "pm.md",
    "swarm-summary.md",
  ]);
  expect(readFileSync(join(project, "doc", "swarm-summary.md"), "utf8")).toMatch(
    /Outcome: approved[\s\S]*swarm\/r_[\s\S]*\n## Evidence on the result\n/,
  );
  expect(run.phases.map(({ name, status }) => `${name} ${status}`)).toEqual([
    "spec done",
    "decompose done",
    "design skipped",
    "implement done",
    "cross-model-review done",
  ]);
  expect(run.evidence.at(-1)).toMatchObject({ command: "test -f T1.txt", exitCode: 0, tree: run.tree });
  expect(run.decisions).toEqual(["English only"]);
  expect(run.usage.calls).toBeGreaterThan(8);
  expect(news.map(({ type }) => type)).toEqual(
    expect.arrayContaining([
      "run.started",
      "phase.started",
      "stream.started",
      "step.finished",
      "stream.finished",
      "run.finished",
    ]),
  );
  await swarm.close();
  expect(readdirSync(join(home, "runs", run.id, "worktrees"))).toEqual([]);
  expect(readdirSync(join(home, "sessions", "session-state")).filter((name) => name.startsWith("swarm-"))).toEqual([]);
  expect(git(project, "branch", "--list", "swarm/*").replace(/\W*/, "")).toBe(run.branch);
});
