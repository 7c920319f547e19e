import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Engine, Serving } from "../../src/engine/port.ts";
import { createRedactor } from "../../src/lib/redact.ts";
import { unwrapped } from "../../src/process/sandbox.ts";
import type { RunStep } from "../../src/protocol/runs.ts";
import { MIGRATIONS } from "../../src/store/migrations.ts";
import { openStore } from "../../src/store/open.ts";
import { readRunSettings } from "../../src/swarm/pipeline/settings.ts";
import { createSwarm } from "../../src/swarm/run/swarm.ts";
import { describeRun } from "../../src/swarm/tools.ts";
import { quietLog, startEngine } from "../support/engine.ts";
import { testGit } from "../support/git.ts";
import { temporaryFolder } from "../support/home.ts";
import { type Script, startSwarm, write } from "../support/swarm/index.ts";
import { until } from "../support/until.ts";

const SPEC = "pipeline:\n  - {phase: spec, agent: pm}\n";
const CROSS = `
pipeline:
  - {phase: implement, parallel: true, agent: engineer}
  - {phase: cross-model-review, condition: differentReviewModel, agent: cross-model-reviewer, fixAgent: engineer, maxIterations: 1, approvalKeyword: APPROVED}
`;

const runOn = async (
  yaml: string,
  { standIns, env = {}, ...more }: Parameters<typeof startSwarm>[0] & { standIns?: boolean } = {},
) => {
  const harness = await startSwarm({ ...more, files: { "swarm.config.yaml": yaml, ...more.files } });
  const settings = readRunSettings(env);
  const start = () => harness.swarm.start({ projectPath: harness.project, issue: "Greet", settings, standIns });
  const document = (name: string) => readFileSync(join(harness.project, "doc", name), "utf8");
  return { ...harness, start, document };
};
const calls = (steps: readonly RunStep[]) => steps.filter(({ kind }) => kind === "call");

test("every model that a person named and that is not there is refused at once, with the place and what is there, and nobody is asked", async () => {
  const { start, swarm, model } = await runOn(
    `primaryModel: swift-9\nreviewModel: brain-2\nagents: {pm: roles/pm.md, idle: roles/idle.md}\n${SPEC}`,
    {
      models: ["alpha", "brain-1", "swift-8", "brain-2-mini", "other", "more", "yet-more", "the-last"],
      env: { REVIEW_MODEL: "brain-3" },
      files: {
        "roles/pm.md": "---\nmodel: nowhere\n---\nI plan.",
        "roles/idle.md": "---\nmodel: never-asked\n---\nI do nothing.",
      },
    },
  );
  const refusal = await start().then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(refusal).toMatchObject({ exitCode: 2 });
  const [head, ...lines] = String((refusal as Error).message).split("\n");
  expect(head).toBe("3 models that were named are not there, nothing was started.");
  expect(lines).toEqual([
    expect.stringMatching(
      /^ {2}swarm\.config\.yaml:1: primaryModel: there is no model "swift-9"; there are swift-8, .* and 2 more\. Name one of them there, or let another stand in with --stand-ins\.$/,
    ),
    expect.stringMatching(/^ {2}REVIEW_MODEL: there is no model "brain-3"; there are brain-1, brain-2-mini, alpha, /),
    expect.stringMatching(/^ {2}roles\/pm\.md: model: there is no model "nowhere"; there are alpha, brain-1, /),
  ]);
  expect(swarm.list()).toEqual([]);
  expect(model.requests).toEqual([]);
});

test("an agent's file may be called as GitHub calls it, and a model's name be spelled as people do", async () => {
  const { start, model, swarm, project, settings } = await runOn(`primaryModel: GPT-5 Mini\n${SPEC}`, {
    models: ["gpt-5-mini", "claude-sonnet-4", "claude-sonnet-4.5"],
    files: { ".github/agents/pm.agent.md": "---\nname: PM\nmodel: Claude Sonnet 4.5\n---\nI plan as this repository wants." },
  });
  const run = await (await start()).finished;
  expect(run.models).toEqual([{ name: "Claude Sonnet 4.5", model: "claude-sonnet-4.5", standsIn: false }]);
  expect(new Set(model.requests.map((request) => request.model))).toEqual(new Set(["claude-sonnet-4.5"]));
  expect(JSON.stringify(model.requests[0])).toContain("I plan as this repository wants.");
  const { notes, phases } = await swarm.validate({ projectPath: project, settings });
  expect(notes).toEqual([]);
  expect(phases[0]!.agents[0]!.path).toMatch(/\.github\/agents\/pm\.agent\.md$/);
});

test("of two files for one agent the other is named, and a spelling that is another model is not taken for it", async () => {
  const { start, swarm, project, settings } = await runOn(`primaryModel: Claude Sonnet 45\n${SPEC}`, {
    models: ["claude-sonnet-4", "claude-sonnet-4.5"],
    files: { ".github/agents/pm.agent.md": "I am second.", ".github/agents/pm.md": "I am first." },
  });
  const { notes, phases } = await swarm.validate({ projectPath: project, settings });
  expect(phases[0]!.agents[0]!.path).toMatch(/\/pm\.md$/);
  expect(notes).toEqual([expect.stringMatching(/pm\.agent\.md is not used: .*pm\.md stands before it$/)]);
  await expect(start()).rejects.toMatchObject({ exitCode: 2 });
});

test("where others may stand in they serve, and the run says for whom", async () => {
  const { start, model, document, swarm } = await runOn(`primaryModel: swift-9\n${SPEC}`, {
    models: ["small"],
    standIns: true,
  });
  const handle = await start();
  const run = await handle.finished;
  expect(run).toMatchObject({
    outcome: "approved",
    models: [{ name: "swift-9", model: "small", standsIn: true }],
  });
  expect(calls(run.steps)).toMatchObject([{ key: "spec/draft:pm", model: "small", asked: "swift-9" }]);
  expect(new Set(model.requests.map((request) => request.model))).toEqual(new Set(["small"]));
  for (const text of [document("pm.md"), document("swarm-summary.md"), describeRun(run)])
    expect(text).toContain("small stands in for swift-9");
  expect(swarm.list()[0]).toMatchObject({ models: [{ standsIn: true }] });
});

test("a file that names no models is run on defaults, for which others stand in unasked, and only those that are used are told", async () => {
  const { start } = await runOn(SPEC, { models: ["small"] });
  const { models } = await (await start()).finished;
  expect(models).toEqual([{ name: "claude-opus-4-6-fast", model: "small", standsIn: true }]);
});

test("planning is served by a stand-in for the default too where every agent of the pipeline has a model of its own", async () => {
  const { swarm, project, settings, model } = await runOn(`agents: {pm: pm.md}\n${SPEC}`, {
    models: ["small"],
    files: { "pm.md": "---\nmodel: small\n---\nI plan." },
    script: () => ({ say: "Clear.\n\nREQUIREMENTS_CLEAR" }),
  });
  const plan = await swarm.plan({ projectPath: project, issue: "Greet", settings, ask: async () => null });
  expect(plan.model).toEqual({ name: "claude-opus-4-6-fast", model: "small", standsIn: true });
  expect(model.requests.map((request) => request.model)).toEqual(["small", "small"]);
});

test("models that are there, and all where a provider does not list any, serve under their own names", async () => {
  const listed = await runOn(`primaryModel: one\n${SPEC}`, { models: ["one", "two"] });
  const run = await (await listed.start()).finished;
  expect(run.models).toEqual([{ name: "one", model: "one", standsIn: false }]);
  expect(run.steps[0]).toMatchObject({ model: "one", asked: null });
  expect(listed.document("pm.md")).toMatch(/^# Specification by pm\n\n_20\S+ · pm on one_\n\n/);
  expect(listed.document("swarm-summary.md")).toMatch(/## Models\n\n\| model .*\n.*\n\| one \| one \| pm \| 1 \|\n/);
  const unlisted = await runOn(`primaryModel: anything\n${SPEC}`);
  expect((await (await unlisted.start()).finished).models).toEqual([{ name: "anything", model: "anything", standsIn: false }]);
});

test("whether another model reviews is judged by what serves, not by names", async () => {
  const reviewed = async (options: Parameters<typeof runOn>[1]) => {
    const { start, roles, document } = await runOn(CROSS, options);
    const run = await (await start()).finished;
    expect(run.outcome).toBe("approved");
    const { status, reason } = run.phases[1]!;
    return { status, reason, run, asked: roles().includes("cross-model-reviewer"), summary: document("swarm-summary.md") };
  };
  const oneServes = await reviewed({ models: ["small"] });
  const why = "small serves for both claude-opus-4-6-fast and gpt-5.2-codex (differentReviewModel)";
  expect(oneServes).toMatchObject({ status: "skipped", reason: why, asked: false });
  expect(oneServes.summary).toContain(why);
  expect(describeRun(oneServes.run)).toContain(`cross-model-review skipped (${why})`);

  const env = { PRIMARY_MODEL: "small", REVIEW_MODEL: "large" };
  expect(await reviewed({ models: ["small", "large"], env })).toMatchObject({ status: "done", asked: true });

  const same = { PRIMARY_MODEL: "small", REVIEW_MODEL: "small" };
  const files = { ".github/agents/cross-model-reviewer.md": "---\nmodel: large\n---\nI look twice." };
  const own = await reviewed({ models: ["small", "large"], env: same, files });
  expect(own.status).toBe("done");
  expect(calls(own.run.steps).map(({ agent, model }) => [agent, model])).toEqual([
    ["engineer", "small"],
    ["cross-model-reviewer", "large"],
  ]);
  const builder = { ".github/agents/engineer.md": "---\nmodel: large\n---\nI build." };
  expect(await reviewed({ models: ["small", "large"], env, files: builder, script: building })).toMatchObject({
    status: "skipped",
    reason: "the review model is the primary model, large (differentReviewModel)",
  });
});

const building: Script = ({ role, afterTool }) =>
  role === "I build." ? (afterTool ? { say: "Built." } : write("built.txt", "built\n")) : undefined;

/** An engine whose provider answers with models of its own choice. */
const answering =
  (served: () => string[], serving?: (name: string) => Serving) =>
  (real: Engine): Engine => ({
    ...real,
    ...(serving && { serving: async (name) => serving(name) }),
    session: (spec) => {
      const session = real.session(spec);
      return { ...session, run: async (request) => ({ ...(await session.run(request)), served: served() }) };
    },
  });

test("a provider that answers under another name is taken at its word, in the journal, the documents and the plan", async () => {
  const { start, document, swarm, project, settings } = await runOn(`primaryModel: brain\n${SPEC}`, {
    engine: answering(() => ["brain-2026-01-31"]),
    script: ({ role }) => (role.startsWith("You ") && role !== "pm" ? { say: "Clear.\n\nREQUIREMENTS_CLEAR" } : undefined),
  });
  const run = await (await start()).finished;
  expect(run.models).toEqual([{ name: "brain", model: "brain", standsIn: false }]);
  expect(calls(run.steps)).toMatchObject([{ key: "spec/draft:pm", model: "brain-2026-01-31", asked: "brain" }]);
  expect(document("pm.md")).toContain(" · pm on brain-2026-01-31 · brain answered as brain-2026-01-31_");
  expect(document("swarm-summary.md")).toContain("| brain-2026-01-31 | brain | pm | 1 |");
  expect(describeRun(run)).toContain("Models: brain-2026-01-31 (pm)\n  brain answered as brain-2026-01-31\n");
  expect(await swarm.plan({ projectPath: project, issue: "Greet", settings, ask: async () => null })).toMatchObject({
    model: { name: "brain", model: "brain" },
    served: ["brain-2026-01-31"],
  });
  expect(document("plan.md")).toContain("pm on brain-2026-01-31, engineer on brain-2026-01-31 · brain answered as");
});

test("a run that is resumed where another model serves repeats nothing, and each step keeps what served it", async () => {
  let [model, hold] = ["first", true];
  const { start, swarm, roles } = await runOn(`primaryModel: brain\n${SPEC}  - {phase: decompose, agent: pm}\n`, {
    standIns: true,
    engine: answering(
      () => [model],
      () => ({ model, standsIn: true }),
    ),
    script: ({ prompt }) => (prompt.includes("JSON array") && hold ? { hang: true } : undefined),
  });
  const handle = await start();
  await until("the tasks to be asked for", () => roles().length === 2, 30_000);
  await swarm.close();
  expect((await handle.finished).status).toBe("interrupted");
  [model, hold] = ["second", false];
  const run = await (await swarm.resume(handle.id)).finished;
  expect(run).toMatchObject({ outcome: "approved", models: [{ name: "brain", model: "second", standsIn: true }] });
  expect(calls(run.steps).map((step) => [step.key, step.model, step.asked])).toEqual([
    ["spec/draft:pm", "first", "brain"],
    ["decompose/tasks:pm/1", "second", "brain"],
  ]);
});

test("a run whose model has gone is not resumed unless another may stand in, and is taken up only once", async () => {
  let gone = false;
  let hold = true;
  const { start, swarm, roles } = await runOn(`primaryModel: brain\n${SPEC}`, {
    engine: answering(
      () => [],
      (name) => (gone ? { model: "small", standsIn: true } : { model: name, standsIn: false }),
    ),
    script: () => (hold ? { hang: true } : undefined),
  });
  const { id } = await start();
  await until("the pm to be asked", () => roles().length === 1, 30_000);
  await swarm.close();
  [gone, hold] = [true, false];
  await expect(swarm.resume(id)).rejects.toMatchObject({ exitCode: 2, message: expect.stringContaining('no model "brain"') });
  expect(swarm.show(id)).toMatchObject({ status: "interrupted", models: [{ model: "brain" }] });
  const both = await Promise.allSettled([swarm.resume(id, { standIns: true }), swarm.resume(id, { standIns: true })]);
  expect(both.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
  expect(both[1]).toMatchObject({ reason: { trouble: "conflict" } });
  const run = both[0]?.status === "fulfilled" ? await both[0].value.finished : undefined;
  expect(run).toMatchObject({ outcome: "approved", models: [{ name: "brain", model: "small", standsIn: true }] });
});

test("runs from before the served model was written down can still be shown", async () => {
  const folder = temporaryFolder();
  const path = join(folder, "io.db");
  const before = MIGRATIONS.slice(
    0,
    MIGRATIONS.findIndex(({ name }) => name === "0005-asked-models"),
  );
  const old = openStore(path, { migrations: before });
  old.db.exec(`
    INSERT INTO runs (id, status, outcome, project_path, issue, inputs, created_at) VALUES ('r_old', 'done', 'approved', '/p', 'Greet', '{}', '2026-01-01T00:00:00Z');
    INSERT INTO run_steps (run_id, key, kind, phase, agent, model, inputs_hash, state, result, started_at)
      VALUES ('r_old', 'spec/draft:pm', 'call', 'spec', 'pm', 'brain', 'x', 'done', '{"ok":true,"text":"Spec"}', '2026-01-01T00:00:00Z');`);
  old.close();
  const store = openStore(path);
  const engine = await startEngine(join(folder, "sessions"), "http://127.0.0.1:9/v1");
  const run = createSwarm({
    store,
    engine,
    emit: () => undefined,
    bind: () => [],
    git: testGit(),
    wrap: unwrapped,
    redactor: createRedactor(),
    findChecks: async () => [],
    runsFolder: folder,
    log: quietLog,
  }).show("r_old");
  store.close();
  expect(run).toMatchObject({ models: [], steps: [{ model: "brain", asked: null }] });
  expect(describeRun(run!)).toContain("Models: brain (pm)\n");
});
