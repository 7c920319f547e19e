import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "../support/home.ts";
import { git, type Script, sh, startSwarm } from "../support/swarm/index.ts";
import { TWICE, twice } from "../support/swarm/repeated.ts";

const started = async (yaml: string, script: Script, more: Parameters<typeof startSwarm>[0] = {}) => {
  const harness = await startSwarm({ script, ...more, files: { "swarm.config.yaml": yaml } });
  const { swarm, project, settings } = harness;
  const run = await (await swarm.start({ projectPath: project, issue: "Do it", settings })).finished;
  return { ...harness, run, shown: (path: string) => git(project, "show", `swarm/${run.id}:${path}`) };
};

test("phases of a kind that stands there twice build on each other, and have records, keys and documents of their own", {
  timeout: 120_000,
}, async () => {
  const { run, project, prompts, shown } = await started(TWICE, twice);
  expect(run).toMatchObject({ status: "done", outcome: "approved" });
  expect(run.phases.map(({ name, status }) => `${name} ${status}`)).toEqual(
    ["spec", "decompose", "implement", "cross-model-review"]
      .flatMap((name) => [name, `${name}~2`])
      .sort((a, b) => a.split("~").length - b.split("~").length)
      .map((name) => `${name} done`),
  );
  expect(run.streams.map(({ number, taskId, branch, merged }) => ({ number, taskId, branch, merged }))).toEqual(
    ["T1", "T1", "T2"].map((taskId, index) => ({
      number: index + 1,
      taskId,
      branch: `swarm/${run.id}-stream-${index + 1}`,
      merged: true,
    })),
  );
  expect(["first.txt", "second-one.txt", "second-two.txt", "mended.txt"].map(shown)).toEqual([
    "first",
    "one",
    "two",
    "mended\nagain",
  ]);
  const calls = run.steps.filter(({ kind }) => kind === "call").map(({ key }) => key);
  expect(new Set(calls).size).toBe(calls.length);
  expect(calls).toEqual(
    expect.arrayContaining([
      "spec/draft:pm",
      "spec~2/draft:pm",
      "decompose/tasks:pm/1",
      "decompose~2/tasks:pm/1",
      "implement/stream-1/draft",
      "implement~2/stream-2/draft",
      "implement~2/stream-3/review:eng-code-reviewer/1",
      "cross-model-review/review:cross-model-reviewer/2",
      "cross-model-review~2/review:cross-model-reviewer/1/fix:engineer",
      "cross-model-review~2/again/review:eng-code-reviewer/1",
    ]),
  );
  expect(run.loops.map(({ key, outcome }) => `${key} ${outcome}`)).toEqual(
    expect.arrayContaining(["spec/review:pm-reviewer approved", "spec~2/review:pm-reviewer approved"]),
  );
  const documents = readdirSync(join(project, "doc")).sort();
  expect(documents).toEqual(
    [
      ...["pm.md", "pm~2.md", "pm-tasks.md", "pm-tasks~2.md", "cross-model-review.md", "cross-model-review~2.md"],
      ...["engineer-stream-1.md", "engineer-stream-2.md", "engineer-stream-3.md", "swarm-summary.md"],
    ].sort(),
  );
  const read = (name: string) => readFileSync(join(project, "doc", name), "utf8");
  expect([read("pm.md"), read("pm~2.md")]).toEqual([expect.stringContaining("Greet."), expect.stringContaining("# Spec two")]);
  expect(run.decisions).toEqual(["Two files"]);
  const [first = "", , second = ""] = prompts("pm");
  expect(first).not.toContain("so far");
  expect(second).toMatch(
    /## The specification so far\n[\s\S]*Greet\.[\s\S]*## Tasks that were worked on before\n- T1: First \(merged\)/,
  );
});

test("in place, and in order where a phase asks for it, the second implement works on what the first left", {
  timeout: 120_000,
}, async () => {
  const { run, project } = await started(TWICE.replaceAll("parallel: true", "parallel: false"), twice);
  expect(run).toMatchObject({ status: "done", outcome: "approved", branch: null });
  expect(readFileSync(join(project, "mended.txt"), "utf8")).toBe("mended\nagain\n");
  expect(run.streams.map(({ number, status }) => `${number} ${status}`)).toEqual(["1 done", "2 done", "3 done"]);
});

test("a resume after the second of a kind failed asks again only what belongs to it", { timeout: 120_000 }, async () => {
  const yaml = `
pipeline:
  - {phase: spec, agent: pm}
  - {phase: implement, parallel: true, agent: engineer}
  - {phase: spec, agent: pm, reviews: [{agent: pm-reviewer, maxIterations: 1, approvalKeyword: APPROVED, onExhausted: fail}]}
  - {phase: implement, parallel: true, agent: engineer}
`;
  let content = false;
  const { run, swarm, roles } = await started(yaml, ({ role, prompt, afterTool }) => {
    if (role === "pm-reviewer") return { say: content ? "APPROVED" : "Say more." };
    if (role === "engineer" && !afterTool) return sh(prompt.includes("Greet, then") ? "echo 2 > two" : "echo 1 > one");
    return undefined;
  });
  expect(run).toMatchObject({ status: "failed", reason: "spec~2: pm-reviewer did not approve the specification" });
  expect(run.phases.map(({ name, status }) => `${name} ${status}`)).toEqual(["spec done", "implement done", "spec~2 failed"]);
  const before = roles().length;
  content = true;
  const resumed = await (await swarm.resume(run.id)).finished;
  expect(resumed).toMatchObject({ status: "done", outcome: "approved" });
  expect(roles().slice(before)).toEqual(["pm-reviewer", "engineer"]);
});

const VERIFY = (more = "") => `
checks: ["test ! -f broken"]
pipeline:
  - {phase: implement, parallel: true, agent: engineer, reviews: [{agent: eng-code-reviewer, maxIterations: 1, approvalKeyword: APPROVED}]}
  - {phase: verify, fixAgent: engineer, maxIterations: 1${more}}
`;
const breaks: Script = ({ role, prompt, afterTool }) =>
  role !== "engineer" || afterTool
    ? undefined
    : sh(prompt.includes("Findings of checks") ? "rm broken; echo x > mended" : "touch broken");

test("verify has what the checks find mended, and whoever approved before looks again at what that changed", {
  timeout: 120_000,
}, async () => {
  const { run, project } = await started(VERIFY(), breaks);
  expect(run).toMatchObject({ status: "done", outcome: "approved" });
  const calls = run.steps.filter(({ kind, phase }) => kind === "call" && phase === "verify").map(({ key }) => key);
  expect(calls).toEqual(["verify/checks/1/fix:engineer", "verify/again/review:eng-code-reviewer/1"]);
  expect(run.loops.find(({ key }) => key === "verify/checks")).toMatchObject({
    outcome: "approved",
    revisions: 1,
    approved: run.tree,
  });
  expect(readFileSync(join(project, "doc", "verify.md"), "utf8")).toMatch(/test ! -f broken`: exit code 1[\s\S]*exit code 0/);
});

test("checks that still fail after the last mending are an outcome, and with onExhausted: fail a resume runs them again", {
  timeout: 120_000,
}, async () => {
  const folder = temporaryFolder();
  const yaml = (more = "") => VERIFY(more).replace("test ! -f broken", `test -f ${folder}/there`);
  const script: Script = ({ role, prompt, afterTool }) =>
    role === "engineer" && !afterTool && prompt.includes("Findings of checks") ? sh("echo tried > tried") : undefined;
  const { run } = await started(yaml(), script);
  expect(run).toMatchObject({
    status: "done",
    outcome: "unapproved",
    reason: expect.stringContaining("verify/checks is exhausted"),
  });
  const second = "  - {phase: verify, fixAgent: engineer, maxIterations: 1, onExhausted: fail}\n";
  const { run: failed, swarm, roles } = await started(`${yaml()}${second}`, script);
  expect(failed).toMatchObject({ status: "failed", outcome: "unapproved", reason: "verify~2: the checks do not pass" });
  writeFileSync(join(folder, "there"), "");
  const before = roles().length;
  const resumed = await (await swarm.resume(failed.id)).finished;
  expect(resumed).toMatchObject({ status: "done", outcome: "approved" });
  expect(new Set(roles().slice(before))).toEqual(new Set(["eng-code-reviewer"]));
});

test("verify in a project without checks says that nothing was verified", { timeout: 60_000 }, async () => {
  const { run } = await started(VERIFY().replace(/^checks.*$/m, ""), breaks, { checks: [] });
  expect(run.notes).toContain("verify: no checks were found in this project, so nothing was verified");
});
