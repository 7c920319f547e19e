import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { packageRoot } from "../../src/lib/package-root.ts";
import type { Run } from "../../src/protocol/runs.ts";
import { PHASE_KINDS } from "../../src/swarm/phases/index.ts";
import { readPipeline } from "../../src/swarm/pipeline/file.ts";
import { fingerprint } from "../../src/swarm/pipeline/inputs.ts";
import { cleanEnvironment, providerEnvironment } from "../support/daemon.ts";
import { temporaryFolder, temporaryHome } from "../support/home.ts";
import { scriptedModel } from "../support/model.ts";
import { swarm as swarmCommand } from "../support/swarm/command.ts";
import { makeProject, play, startSwarm } from "../support/swarm/index.ts";

const validated = async (yaml: string, files: Record<string, string> = {}) => {
  const { swarm, project, settings } = await startSwarm({ files: { ...files, "swarm.config.yaml": yaml } });
  return swarm.validate({ projectPath: project, settings });
};
const IMPLEMENT = "  - {phase: implement, parallel: true, agent: engineer}\n";

/** A file for a later version of the original program. */
const LATER = `
primaryModel: scripted
reviewModel: scripted
fastModel: swift
agents:
  pm: builtin:pm
  engineer: builtin:engineer
  code-reviewer: builtin:eng-code-reviewer
  cross-model: builtin:cross-model-reviewer
  fleet-strategist: builtin:fleet-strategist
  diff-analyst: builtin:diff-analyst
verify: {build: "true", test: "test -f README.md", lint: null}
pipeline:
  - {phase: spec, condition: noPlanProvided, agent: pm, reviews: []}
  - {phase: decompose, agent: pm, frontendMarker: "[FRONTEND]"}
  - {phase: implement, parallel: true, agent: engineer, clarificationAgent: null, clarificationKeyword: ~, reviews: [{agent: code-reviewer, maxIterations: 3, approvalKeyword: APPROVED, clarificationKeyword: null}], qa: null}
  - {phase: cross-model-review, condition: differentReviewModel, agent: cross-model, fixAgent: engineer, maxIterations: 3, approvalKeyword: APPROVED}
  - {phase: verify, fixAgent: engineer, maxIterations: 3}
`;

test("a file of a later version of the original runs: a fast model splits, its commands are the checks, and agents that nobody uses are no fault", {
  timeout: 120_000,
}, async () => {
  const { swarm, project, settings, model, prompts } = await startSwarm({
    files: { "swarm.config.yaml": LATER },
    models: ["scripted", "swift"],
  });
  const plan = await swarm.validate({ projectPath: project, settings });
  expect(plan).toMatchObject({ fastModel: "swift", checks: ["true", "test -f README.md"] });
  expect(plan.notes).toEqual([
    'agents.fleet-strategist: no agent "builtin:fleet-strategist" ships here; nobody uses it',
    'agents.diff-analyst: no agent "builtin:diff-analyst" ships here; nobody uses it',
  ]);
  expect(plan.phases[1]).toMatchObject({ phase: "decompose", agents: [{ name: "pm", model: "swift" }] });
  const run = await (await swarm.start({ projectPath: project, issue: "Greet", settings })).finished;
  expect(run).toMatchObject({ status: "done", outcome: "approved", notes: expect.arrayContaining(plan.notes) });
  expect(run.phases.map(({ name, status }) => `${name} ${status}`)).toEqual([
    ...["spec done", "decompose done", "implement done", "cross-model-review skipped", "verify done"],
  ]);
  expect(prompts("pm")).toHaveLength(2);
  const swift = model.requests.filter((request) => request.model === "swift");
  expect(swift).toHaveLength(1);
  expect(JSON.stringify(swift[0])).toContain("JSON array");
});

test("a fast model that is not there is refused with the line that names it", async () => {
  const { swarm, project, settings, model } = await startSwarm({
    files: { "swarm.config.yaml": LATER },
    models: ["scripted", "quick"],
  });
  await expect(swarm.start({ projectPath: project, issue: "Greet", settings })).rejects.toThrow(
    'swarm.config.yaml:4: fastModel: there is no model "swift"; there are',
  );
  expect(model.requests).toEqual([]);
});

test("noPlanProvided leaves a phase out when the request is a plan, with the reason, and the plan is what is split", {
  timeout: 120_000,
}, async () => {
  const model = await scriptedModel(play());
  const yaml = `pipeline:\n  - {phase: spec, condition: noPlanProvided, agent: pm}\n  - {phase: decompose, agent: pm}\n${IMPLEMENT}`;
  const project = makeProject({ "swarm.config.yaml": yaml });
  const plan = join(temporaryFolder(), "plan.md");
  writeFileSync(plan, "Greet everybody by name.");
  const env = cleanEnvironment(temporaryHome(), providerEnvironment(model.url));
  const planned = JSON.parse((await swarmCommand(["-p", plan, "--json"], project, env)).stdout) as Run;
  expect(planned).toMatchObject({ status: "done", outcome: "approved" });
  expect(planned.phases[0]).toMatchObject({ status: "skipped", reason: "the request is a plan (noPlanProvided)" });
  expect(JSON.stringify(model.requests[0])).toContain("Greet everybody by name.");
  const worded = JSON.parse((await swarmCommand(["Greet", "--json"], project, env)).stdout) as Run;
  expect(worded.phases[0]).toMatchObject({ status: "done" });
});

test("null where something is needed, or for a key that is none, is told with its place", async () => {
  await expect(validated(`pipeline:\n  - {phase: implement, qa: {agent: null}}\n`)).rejects.toThrow(
    "swarm.config.yaml:2: pipeline[0].qa.agent: found null",
  );
  await expect(validated(`agents: {pm: null}\npipeline:\n${IMPLEMENT}`)).rejects.toThrow(
    "swarm.config.yaml:1: agents.pm: found null",
  );
  await expect(validated(`turbo: null\npipeline:\n${IMPLEMENT}`)).rejects.toThrow(":1: turbo: there is no such key.");
});

test("an agent that nobody uses may be one that ships elsewhere, but a file that it names must be there", async () => {
  const yaml = (source: string) => `agents: {idle: ${source}}\npipeline:\n${IMPLEMENT}`;
  expect((await validated(yaml("roles/idle.md"), { "roles/idle.md": "I wait." })).notes).toEqual([]);
  await expect(validated(yaml("roles/idle.md"))).rejects.toThrow(
    /:1: agents\.idle: its file is missing; looked at \/.*roles\/idle\.md/,
  );
  await expect(validated(yaml("builtin:idle").replace("agent: engineer", "agent: idle"))).rejects.toThrow(
    /:1: agents\.idle: "builtin:idle": its instructions are missing/,
  );
});

test.each([
  ["a second cross-model review before anything else is built", "implement, cross-model-review, cross-model-review", undefined],
  ["a specification between two implements", "spec, implement, spec, implement", undefined],
  ["an implement after the cross-model review", "implement, cross-model-review, implement", undefined],
  ["two splits before one implement", "decompose, spec, decompose, implement", undefined],
  ["checks before anything is built", "verify, implement", '[0].phase: "verify" needs an "implement" phase before it'],
  [
    "a second split that nobody takes up",
    "decompose, implement, decompose",
    '[2].phase: "decompose" must stand before "implement"',
  ],
  ["a second design that nobody takes up", "implement, design", '[1].phase: "design" must stand before "implement"'],
])("the order with %s is judged by whether it makes sense", async (_, order, why) => {
  const keys: Record<string, string> = {
    spec: "agent: pm",
    decompose: "agent: pm",
    design: "agent: designer",
    implement: "parallel: true, agent: engineer",
    "cross-model-review": "agent: cross-model-reviewer, fixAgent: engineer, maxIterations: 1, approvalKeyword: OK",
    verify: "fixAgent: engineer, maxIterations: 1",
  };
  const yaml = `pipeline:\n${order
    .split(", ")
    .map((kind) => `  - {phase: ${kind}, ${keys[kind]}}\n`)
    .join("")}`;
  if (why === undefined) expect((await validated(yaml)).phases).toHaveLength(order.split(", ").length);
  else await expect(validated(yaml)).rejects.toThrow(`pipeline${why}`);
});

test("commands named twice over are refused, and the same file has the fingerprint it had before, so that its runs resume", async () => {
  await expect(validated(`checks: ["true"]\nverify: {test: "true"}\npipeline:\n${IMPLEMENT}`)).rejects.toThrow(
    ':2: verify: "checks" lists the commands already; keep one of the two',
  );
  const read = await readPipeline(
    `
primaryModel: scripted
reviewModel: another
concurrency: 2
checks: ["test ! -f broken"]
agents: {pm: builtin:pm}
pipeline:
  - {phase: spec, agent: pm, reviews: [{agent: pm-reviewer, maxIterations: 1, approvalKeyword: APPROVED, clarificationKeyword: ASK, clarificationAgent: pm}]}
  - {phase: decompose, agent: pm}
  - {phase: design, agent: designer, condition: hasFrontendTasks, clarificationAgent: pm}
  - {phase: implement, parallel: false, agent: engineer, qa: {agent: tester, maxIterations: 1, approvalKeyword: ALL_PASSED}}
  - {phase: cross-model-review, agent: cross-model-reviewer, fixAgent: engineer, maxIterations: 1, approvalKeyword: APPROVED, onExhausted: fail}
`,
    {
      kinds: PHASE_KINDS,
      places: { root: temporaryFolder(), agentsDir: "none", shipped: join(packageRoot, "agents") },
    },
  );
  if ("problems" in read) throw new Error(JSON.stringify(read.problems));
  expect(fingerprint({ path: "swarm.config.yaml", ...read }, "issue").pipelineHash).toBe(
    "a60a65d869e8b63839e78bda4f243f817e51efd53111ea8b4ae6553bdbdec549",
  );
});
