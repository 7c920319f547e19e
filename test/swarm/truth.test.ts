import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { exitCodeOf } from "../../src/swarm/run/swarm.ts";
import { git, type Script, sh, startSwarm, write } from "../support/swarm/index.ts";

const CODE = "{agent: eng-code-reviewer, maxIterations: 1, approvalKeyword: APPROVED}";
const QA = "    qa: {agent: tester, maxIterations: 1, approvalKeyword: ALL_PASSED}";

async function runWith(yaml: string, script: Script = () => undefined, more: Parameters<typeof startSwarm>[0] = {}) {
  const harness = await startSwarm({ ...more, script, files: { "swarm.config.yaml": yaml } });
  const run = await (await harness.swarm.start({ projectPath: harness.project, issue: "Greet", settings: harness.settings }))
    .finished;
  return { ...harness, run };
}

test("in place, a check that fails and leaves a file behind still fails the run", async () => {
  const { run, project } = await runWith(`
checks: ["echo x > report.txt; exit 1"]
pipeline:
  - {phase: implement, parallel: false, agent: engineer, reviews: [${CODE}]}
`);
  expect([run.outcome, exitCodeOf(run)]).toEqual(["unapproved", 3]);
  expect(run.reason).toContain('the check "echo x > report.txt; exit 1" fails');
  expect(readFileSync(join(project, "doc", "swarm-summary.md"), "utf8")).toMatch(/A check fails[\s\S]*exit code 1/);
});

test("in place, what a tester changes is seen: the code is reviewed again as it then is", async () => {
  const { run, roles, prompts } = await runWith(
    `
pipeline:
  - phase: implement
    parallel: false
    agent: engineer
    reviews: [${CODE}]
${QA}
`,
    ({ role, afterTool, before }) => (role === "tester" && !afterTool && before === 0 ? sh("echo hacked > T1.txt") : undefined),
  );
  expect(roles()).toEqual(["engineer", "eng-code-reviewer", "tester", "eng-code-reviewer"]);
  expect(prompts("eng-code-reviewer")[1]).toContain("+hacked");
  expect(run.loops.map(({ approved }) => approved)).toEqual([run.tree, run.tree]);
  expect(run.notes.join()).toContain("changed files in place");
});

test("a fix for the last reviewer voids what others approved: they look at the whole again, and nobody does without a fix", async () => {
  const yaml = `
pipeline:
  - phase: implement
    parallel: true
    agent: engineer
    reviews: [${CODE}]
${QA}
  - {phase: cross-model-review, agent: cross-model-reviewer, fixAgent: engineer, maxIterations: 1, approvalKeyword: APPROVED}
`;
  const models = { env: { PRIMARY_MODEL: "writer", REVIEW_MODEL: "critic" } };
  const fixed: Script = ({ role, before, prompt, afterTool }) => {
    if (role === "cross-model-reviewer" && before === 0) return { say: "1. Two lines, please." };
    if (role === "engineer" && !afterTool && prompt.includes("Two lines, please")) return write("T1.txt", "one\ntwo\n");
    return undefined;
  };
  const { run, roles, prompts, project } = await runWith(yaml, fixed, models);
  expect(roles()).toEqual([
    "engineer",
    "eng-code-reviewer",
    "tester",
    "cross-model-reviewer",
    "engineer",
    "cross-model-reviewer",
    "eng-code-reviewer",
    "tester",
  ]);
  expect(prompts("eng-code-reviewer")[1]).toContain("+two");
  expect(run.loops.filter(({ phase }) => phase === "cross-model-review").map(({ key, approved }) => [key, approved])).toEqual([
    ["cross-model-review/review:cross-model-reviewer", run.tree],
    ["cross-model-review/again/review:eng-code-reviewer", run.tree],
    ["cross-model-review/again/qa:tester", run.tree],
  ]);
  expect(git(project, "show", `${run.branch}:T1.txt`)).toBe("one\ntwo");
  const plain = await runWith(yaml, () => undefined, models);
  expect(plain.roles()).toEqual(["engineer", "eng-code-reviewer", "tester", "cross-model-reviewer"]);
  expect(plain.run.loops.map(({ key }) => key).filter((key) => key.includes("again"))).toEqual([]);
  const stubborn = await runWith(
    yaml,
    (told) => (told.role === "eng-code-reviewer" && told.before > 0 ? { say: "Not like this." } : fixed(told)),
    models,
  );
  expect([stubborn.run.outcome, exitCodeOf(stubborn.run)]).toEqual(["unapproved", 3]);
});

test("a reviewer that asked is shown the answer when it looks again", async () => {
  const { prompts } = await runWith(
    `
pipeline:
  - phase: spec
    agent: pm
    reviews: [{agent: pm-reviewer, maxIterations: 1, approvalKeyword: APPROVED, clarificationKeyword: ASK, clarificationAgent: designer}]
`,
    ({ role, before }) => {
      if (role === "pm-reviewer" && before === 0) return { say: "Which language?\n\nASK" };
      return role === "designer" ? { say: "Welsh, please." } : undefined;
    },
  );
  expect(prompts("pm-reviewer")[1]).toMatch(/Which language\?[\s\S]*The answer of designer:\nWelsh, please\./);
});

test("an engineer writes in its own tree and not in the user's checkout", async () => {
  const target = { path: "" };
  const { swarm, project, settings, model } = await startSwarm({
    files: { "swarm.config.yaml": "pipeline:\n  - {phase: implement, parallel: true, agent: engineer}\n" },
    script: ({ role, afterTool }) => (role === "engineer" && !afterTool ? write(target.path, "behind your back\n") : undefined),
  });
  target.path = join(project, "README.md");
  const run = await (await swarm.start({ projectPath: project, issue: "Greet", settings })).finished;
  expect(run.status).toBe("done");
  expect(readFileSync(target.path, "utf8")).toBe("A project.\n");
  expect(JSON.stringify(model.requests.at(-1)!.messages.at(-1))).toMatch(/README\.md lies outside .*the tree you work in/);
});
