import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { exitCodeOf } from "../../src/swarm/run/swarm.ts";
import { cleanEnvironment } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { swarm as swarmCommand } from "../support/swarm/command.ts";
import { git, startSwarm, write } from "../support/swarm/index.ts";

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

test("a file that only lists the phases is shown with its defaults by swarm validate, and runs as the default pipeline does", async () => {
  const { swarm, project, settings, roles } = await startSwarm({
    files: {
      "swarm.config.yaml":
        "agents:\n  pm: builtin:pm\n  security: .github/agents/security.md\npipeline:\n  - phase: spec\n  - phase: decompose\n  - phase: design\n  - phase: implement\n  - phase: cross-model-review\n",
      ".github/agents/security.md": "I look for holes.",
    },
  });
  const shown = await swarmCommand(["validate"], project, cleanEnvironment(temporaryHome()));
  expect(shown).toMatchObject({ code: 0, stderr: "" });
  for (const line of [
    /^cross-model-review \(if differentReviewModel\): /m,
    /^ {2}engineer implements, streams side by side on /m,
    /^ {2}code-reviewer reviews, at most 3 revisions, "APPROVED" on /m,
    /^ {2}tester tests, at most 5 revisions, "ALL_PASSED" on /m,
    /^pipeline\[3\] \(implement\) by default: agent engineer, parallel true, /m,
  ])
    expect(shown.stdout).toMatch(line);
  const run = await (await swarm.start({ projectPath: project, issue: "Greet the user", settings })).finished;
  expect(run).toMatchObject({ status: "done", outcome: "approved" });
  expect(roles().slice(0, 7)).toEqual([
    ...["pm", "pm-reviewer", "eng-spec-reviewer", "pm", "engineer", "eng-code-reviewer", "tester"],
  ]);
  expect(git(project, "show", `${run.branch}:T1.txt`)).toBe("work of T1");
});

test("a pipeline of bare phases, with agents of the repository beside built-in ones, runs to its end", async () => {
  const yaml = `primaryModel: claude-opus-4-6-fast
reviewModel: gpt-5.2-codex

agents:
  pm:           builtin:pm                    # Built-in instructions
  engineer:     .github/agents/engineer.md    # Custom file in repo
  security:     .github/agents/security.md    # Entirely new agent

pipeline:
  - phase: spec          # Specification drafting + reviews
  - phase: decompose     # Task decomposition
  - phase: design        # UI/UX design (conditional)
  - phase: implement     # Per-task engineering + reviews + QA
  - phase: cross-model-review  # Different-model review (conditional)
`;
  const { swarm, project, settings, roles } = await startSwarm({
    checks: [{ name: "test", command: "test -f made.txt", cwd: "." }],
    files: {
      "swarm.config.yaml": yaml,
      ".github/agents/engineer.md": "I build.",
      ".github/agents/security.md": "I am wary.",
    },
    script: ({ role, afterTool }) =>
      role === "I build." ? (afterTool ? { say: "Done." } : write("made.txt", "hello\n")) : undefined,
  });
  const run = await (await swarm.start({ projectPath: project, issue: "Greet the user", settings })).finished;
  expect([run.outcome, run.reason]).toEqual(["approved", null]);
  expect(roles()).toEqual([
    "pm",
    "pm-reviewer",
    "eng-spec-reviewer",
    "pm",
    "I build.",
    "eng-code-reviewer",
    "tester",
    "cross-model-reviewer",
  ]);
  expect(run.phases.map(({ name, status }) => `${name} ${status}`)).toContain("design skipped");
});
