import { expect, test } from "vitest";
import { Config } from "../../src/home/config.ts";
import { createRedactor } from "../../src/lib/redact.ts";
import type { News } from "../../src/protocol/events.ts";
import type { Owed } from "../../src/protocol/outbox.ts";
import { createSquads } from "../../src/squads/squads.ts";
import { openStore } from "../../src/store/open.ts";
import { createGate } from "../../src/tools/gate.ts";
import { quietLog, startEngine } from "../support/engine.ts";
import { testGit } from "../support/git.ts";
import { temporaryFolder } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { soon } from "../support/soon.ts";
import { unlimited } from "../support/spending.ts";
import { characterOf, project } from "../support/squads.ts";
import { until } from "../support/until.ts";

const origin = { conversation: "main", source: { channel: "api" as const } };

/** The squads on a real runtime, in this process. */
async function squadsOn(modelUrl: string, config: Record<string, unknown> = {}) {
  const engine = await startEngine(temporaryFolder(), modelUrl, config);
  const store = openStore(":memory:");
  const redactor = createRedactor();
  const news: News[] = [];
  const reports: Owed[] = [];
  const parsed = Config.parse(config);
  const squads = createSquads({
    rulesFor: () => "",
    store,
    engine,
    gate: createGate({ store, redactor, log: quietLog, policy: () => undefined }),
    tools: [],
    git: testGit(),
    worktreesFolder: temporaryFolder(),
    installedFolder: undefined,
    wrap: async ([program, ...args]) => [program, ...args],
    env: process.env,
    redactor,
    config: () => parsed,
    spending: unlimited(store),
    emit: (one) => news.push(one),
    log: quietLog,
    owe: (owed) => reports.push(owed),
  });
  squads.start();
  return { squads, news, reports };
}

test("ten agents of two squads whose model takes 2 s finish in little more than 2 s", async () => {
  const model = await scriptedModel((request) =>
    lastUserText(request).includes("warm") ? { say: "warm" } : { say: "ready", delayMs: 2_000 },
  );
  const { squads, reports } = await squadsOn(model.url);
  for (const slug of ["one", "two"]) {
    squads.create({ name: slug, projectPath: project() });
    for (let index = 0; index < 5; index += 1) squads.addAgent(slug, { roleTitle: `Engineer ${index}`, charter: "All of it." });
  }
  const everybody = ["one", "two"].flatMap((slug) => squads.agents(slug).map(({ characterName }) => ({ slug, characterName })));
  const run = async (task: string) => {
    const started = performance.now();
    const tasks = everybody.map(({ slug, characterName }) => squads.delegate(slug, { task, agent: characterName, origin }).task);
    await until("all ten to end", () => tasks.every(({ id }) => squads.task(id).status === "done"), 30_000);
    return performance.now() - started;
  };
  await run("warm up");
  const took = await run("do it");
  expect(took).toBeGreaterThan(2_000);
  // One after another, they would take 20 s.
  expect(took).toBeLessThan(Math.min(soon(4_000), 15_000));
  expect(reports).toHaveLength(20);
});

test("two tasks for one agent run one after the other, in order", async () => {
  let atWork = 0;
  let most = 0;
  const model = await scriptedModel(async () => {
    atWork += 1;
    most = Math.max(most, atWork);
    await new Promise((resolve) => setTimeout(resolve, 300));
    atWork -= 1;
    return { say: "ready" };
  });
  const { squads, news } = await squadsOn(model.url);
  squads.create({ name: "one", projectPath: project() });
  const { characterName } = squads.addAgent("one", { roleTitle: "Engineer", charter: "All of it." });
  const ids = ["first", "second", "third"].map((task) => squads.delegate("one", { task, agent: characterName, origin }).task.id);
  await until("all to end", () => ids.every((id) => squads.task(id).status === "done"), 20_000);
  expect(most).toBe(1);
  const order = news
    .filter((item) => item.type === "task.started" || item.type === "task.finished")
    .map(({ type, data }) => `${type} ${data.id}`);
  expect(order).toEqual(ids.flatMap((id) => [`task.started ${id}`, `task.finished ${id}`]));
  const prompts = model.requests.filter((request) => characterOf(request)).map(lastUserText);
  expect(prompts.at(-1)).toContain("third");
  expect(JSON.stringify(model.requests.at(-1)!.messages)).toContain("first");
});

test("the model follows the agent's tier and the task's complexity, and the choice is shown", async () => {
  const model = await scriptedModel(() => ({ say: "ready" }), { models: ["scripted", "big", "small"] });
  const { squads } = await squadsOn(model.url, { modelTiers: { high: ["big"], medium: ["scripted"], low: ["small"] } });
  squads.create({ name: "one", projectPath: project() });
  squads.addAgent("one", { roleTitle: "Engineer", charter: "All of it.", modelTier: "medium" });
  const used: string[] = [];
  for (const task of ["fix a typo in the readme", "add a button", "refactor the authentication protocol"]) {
    const { id } = squads.delegate("one", { task, origin }).task;
    await until("it to end", () => squads.task(id).status === "done", 20_000);
    used.push(model.requests.at(-1)!.model);
    expect(squads.task(id)).toMatchObject({ model: used.at(-1), reason: expect.stringContaining(`model ${used.at(-1)}: `) });
  }
  expect(used).toEqual(["small", "scripted", "big"]);
});

test("a task is ended when its model is silent for too long, and whoever asked is told why", async () => {
  const model = await scriptedModel(() => ({ hang: true }));
  const { squads, reports } = await squadsOn(model.url, { taskSilenceMs: 700 });
  squads.create({ name: "one", projectPath: project() });
  squads.addAgent("one", { roleTitle: "Engineer", charter: "All of it." });
  const { id } = squads.delegate("one", { task: "wait for ever", origin }).task;
  await until("it to end", () => reports.length === 1, 20_000);
  expect(squads.task(id)).toMatchObject({ status: "failed", error: { code: "timed_out" } });
  expect(reports[0]!.text).toContain("has ended: failed");
  expect(squads.recall("one").agents[0]!.status).toBe("error");
});

test("work without a name goes to the one whom it fits, the idle before the busy, and the reason is kept", async () => {
  const model = await scriptedModel(() => ({ say: "ready", delayMs: 500 }));
  const { squads } = await squadsOn(model.url);
  squads.create({ name: "one", projectPath: project() });
  squads.addAgent("one", { roleTitle: "Observability Engineer", charter: "Owns logs and metrics." });
  squads.addAgent("one", { roleTitle: "Frontend Engineer", charter: "Owns the pages." });
  squads.addAgent("one", { roleTitle: "Frontend Engineer", charter: "Owns the pages." });
  const [, second, third] = squads.agents("one");
  const first = squads.delegate("one", { task: "fix the login page", origin }).task;
  const next = squads.delegate("one", { task: "fix the signup page", origin }).task;
  expect([first.agent, next.agent]).toEqual([second!.characterName, third!.characterName]);
  expect(next.reason).toContain("idle");
  await until("both to end", () => [first, next].every(({ id }) => squads.task(id).status === "done"), 20_000);
});
