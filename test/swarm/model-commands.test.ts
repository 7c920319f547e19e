import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { textOf } from "../../src/engine/rehearsal/wire.ts";
import type { Run } from "../../src/protocol/runs.ts";
import { cleanEnvironment, providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { isAfterTool, lastUserText, scriptedModel } from "../support/model.ts";
import { swarm } from "../support/swarm/command.ts";
import { makeProject, play, type Script } from "../support/swarm/index.ts";
import { until } from "../support/until.ts";

const SPEC = "primaryModel: swift-9\npipeline:\n  - {phase: spec, agent: pm}\n";
const MODELS = { models: ["small", "scripted"] };

async function scene(files: Record<string, string>, script?: Script, models = MODELS.models) {
  const model = await scriptedModel(play(script), { models });
  const project = makeProject(files);
  const env = cleanEnvironment(temporaryHome(), providerEnvironment(model.url));
  return { model, project, env, read: (name: string) => readFileSync(join(project, "doc", name), "utf8") };
}

test("a named model that is not there is exit 2 before any request, for run and plan, and --stand-ins lets another serve", {
  timeout: 120_000,
}, async () => {
  const { model, project, env, read } = await scene({ "swarm.config.yaml": SPEC }, ({ role }) =>
    role.startsWith("You ") && role !== "pm" ? { say: "Clear.\n\nREQUIREMENTS_CLEAR" } : undefined,
  );
  const why = /swarm\.config\.yaml:1: primaryModel: there is no model "swift-9"; there are small, scripted\..*--stand-ins/;
  const refused = await swarm(["Greet"], project, env);
  expect(refused).toMatchObject({ code: 2, stdout: "", stderr: expect.stringMatching(why) });
  const document = await swarm(["plan", "Greet", "--json"], project, env);
  expect(document.code).toBe(2);
  expect(JSON.parse(document.stdout)).toEqual({ error: { code: "usage", message: expect.stringMatching(why) } });
  const named = await swarm(["Greet"], project, { ...env, PRIMARY_MODEL: "scriptid" });
  expect(named).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('PRIMARY_MODEL: there is no model "scriptid"; there are scripted, small.'),
  });
  expect(model.requests).toEqual([]);
  expect(JSON.parse((await swarm(["list", "--json"], project, env)).stdout)).toEqual({ items: [] });

  const ran = await swarm(["Greet", "--stand-ins"], project, env);
  expect(ran).toMatchObject({ code: 0, stderr: expect.stringMatching(/^run r_\w+\n\w+ stands in for swift-9\nProject: /) });
  const planned = await swarm(["plan", "Greet", "--stand-ins"], project, env);
  expect(planned).toMatchObject({ code: 0, stderr: expect.stringMatching(/\n\w+ stands in for swift-9\npm reads/) });
  expect(read("plan.md")).toMatch(/ · pm on (\w+), engineer on \1 · \1 stands in for swift-9_/);
  expect(await swarm(["validate"], project, env)).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("Whether the models are there is looked up when a run begins"),
  });
});

test("others stand in for the models of the shipped pipeline, and terminal, summary, documents and show say so", {
  timeout: 120_000,
}, async () => {
  const { model, project, env, read } = await scene({}, undefined, ["small"]);
  const ran = await swarm(["Add a greeting"], project, { ...env, COPILOT_MODEL: "small" });
  expect(ran.code).toBe(0);
  const told = ["small stands in for claude-opus-4-6-fast", "small stands in for gpt-5.2-codex"];
  const id = /^run (r_\w+)\n/.exec(ran.stderr)![1]!;
  expect(ran.stderr.split("\n").slice(1, 3)).toEqual(told);
  expect(ran.stderr).toMatch(/✓ spec\/draft:pm small \d/);
  const same = "small serves for both claude-opus-4-6-fast and gpt-5.2-codex (differentReviewModel)";
  expect(ran.stderr).toContain(`▸ cross-model-review · skipped: ${same}\n`);
  const shown = await swarm(["show", id], project, env);
  for (const text of [ran.stdout, shown.stdout, read("swarm-summary.md")]) {
    for (const each of [...told, same]) expect(text).toContain(each);
  }
  for (const name of ["pm.md", "pm-tasks.md", "engineer-stream-1.md"])
    expect(read(name).split("\n")[2]).toMatch(/ on small.* · small stands in for claude-opus-4-6-fast_$/);
  expect(read("engineer-stream-1.md")).toContain("engineer on small, code-reviewer on small, tester on small");
  const run = JSON.parse((await swarm(["show", id, "--json"], project, env)).stdout) as Run;
  expect(run.models).toEqual([
    { name: "claude-opus-4-6-fast", model: "small", standsIn: true },
    { name: "gpt-5.2-codex", model: "small", standsIn: true },
  ]);
  expect(run.steps.find(({ key }) => key === "spec/draft:pm")).toMatchObject({ model: "small", asked: "claude-opus-4-6-fast" });
  expect(new Set(model.requests.map((request) => request.model))).toEqual(new Set(["small"]));
});

test("the rehearsal serves every name", { timeout: 120_000 }, async () => {
  const project = makeProject({ "swarm.config.yaml": SPEC });
  const env = cleanEnvironment(temporaryHome(), { IO_ENGINE: "rehearsal", REVIEW_MODEL: "whatever" });
  const ran = await swarm(["Add a greeting", "--json"], project, env);
  expect(ran.code, ran.stderr + ran.stdout).toBe(0);
  expect(ran.stderr).toContain("rehearsal stands in for swift-9");
  const run = JSON.parse(ran.stdout) as Run;
  expect(run.models).toEqual([{ name: "swift-9", model: "rehearsal", standsIn: true, rehearsal: true }]);
  // No model is listed as asked or as answering that was not used.
  const calls = run.steps.filter(({ kind }) => kind === "call");
  expect(calls.length).toBeGreaterThan(0);
  expect(new Set(calls.flatMap(({ model, asked }) => [model, asked]))).toEqual(new Set(["rehearsal"]));
  const summary = readFileSync(join(project, "doc", "swarm-summary.md"), "utf8");
  expect(summary.match(/.*swift-9.*/g)).toEqual(["- rehearsal stands in for swift-9"]);
});

test("the API and the tool refuse a named model that is not there, and say how another is let in", {
  timeout: 120_000,
}, async () => {
  const projectPath = makeProject({ "swarm.config.yaml": SPEC });
  let hold = true;
  const scripted = play(() => (hold ? { hang: true } : undefined));
  const model = await scriptedModel((request) => {
    const text = lastUserText(request);
    if (!text.includes("[via")) return scripted(request);
    if (isAfterTool(request) || text.includes("[via background]")) return { say: "So it is." };
    return {
      call: [{ tool: "swarm_run", args: { project_path: projectPath, issue: "Greet", stand_ins: text.includes("let others") } }],
    };
  }, MODELS);
  const daemon = await startDaemonProcess(temporaryHome(), providerEnvironment(model.url));
  const post = async (path: string, body?: object) => {
    const response = await daemon.fetch(path, {
      method: "POST",
      ...(body && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
    });
    return { status: response.status, body: await response.json() };
  };
  const runs = () => daemon.json<{ items: Run[] }>("GET", "/api/runs");
  const why = 'swarm.config.yaml:1: primaryModel: there is no model "swift-9"; there are small, scripted.';
  expect(await post("/api/runs", { projectPath, issue: "Greet" })).toEqual({
    status: 400,
    body: {
      error: {
        code: "bad_request",
        message: `a model that was named is not there, nothing was started.\n  ${why} Name one of them there, or let another stand in with "standIns": true.`,
      },
    },
  });
  expect(model.requests).toEqual([]);
  await daemon.ask({ text: "build it" });
  expect(textOf(model.requests.at(-1)!.messages.at(-1))).toContain(
    `${why} Name one of them there, or let another stand in with "stand_ins": true, if the user says so.`,
  );
  expect(await runs()).toEqual({ items: [] });

  const started = await post("/api/runs", { projectPath, issue: "Greet", standIns: true });
  expect(started).toMatchObject({ status: 201, body: { models: [{ name: "swift-9", standsIn: true }] } });
  const { id } = started.body as Run;
  await post(`/api/runs/${id}/cancel`);
  await until("the run to be cancelled", async () => (await runs()).items[0]?.status === "cancelled");
  hold = false;
  expect(await post(`/api/runs/${id}/resume`)).toMatchObject({ status: 200, body: { status: "running" } });
  await until("the run to end", async () => (await runs()).items[0]?.outcome === "approved");
  expect(await post(`/api/runs/${id}/resume`, { standIns: "yes" })).toMatchObject({ status: 400 });

  await daemon.ask({ text: "build it, let others serve" });
  const result = model.requests.findLast(
    (request) => isAfterTool(request) && textOf(request.messages.at(-1)).includes("has begun"),
  );
  expect(textOf(result?.messages.at(-1))).toMatch(/has begun\. \w+ stands in for swift-9\. You will be told/);
  await until("the second run to end", async () => (await runs()).items[0]?.outcome === "approved");
  expect((await runs()).items).toHaveLength(2);
});
