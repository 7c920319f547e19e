import { rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { textOf } from "../../src/engine/rehearsal/wire.ts";
import type { Analysis } from "../../src/protocol/analysis.ts";
import type { Agent, Task } from "../../src/protocol/squads.ts";
import { openStore } from "../../src/store/open.ts";
import { createSquadStore } from "../../src/store/squads.ts";
import { createTaskActivity } from "../../src/store/task-activity.ts";
import { runIo } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { characterOf, daemonOn, ended, lastResult, project, squadWith, stepOf } from "../support/squads.ts";

test("what cannot be done is refused with a sentence that helps, and nothing is half made", async () => {
  const model = await scriptedModel(() => ({ say: "ready" }));
  const daemon = await daemonOn(model);
  const folder = project();
  const post = async (path: string, body: unknown) => {
    const response = await daemon.fetch(path, {
      method: "POST",
      body: JSON.stringify(body),
      headers: { "content-type": "application/json" },
    });
    const { error } = (await response.json()) as { error?: { message: string } };
    return [response.status, error?.message ?? ""] as const;
  };
  const gone = join(folder, "nowhere");
  expect(await post("/api/squads", { name: "a", projectPath: gone })).toEqual([
    400,
    expect.stringContaining("there is no such folder"),
  ]);
  expect(await post("/api/squads", { name: "a", projectPath: join(folder, "README.md") })).toEqual([
    400,
    expect.stringContaining("is not a folder"),
  ]);
  expect(await post("/api/squads", { name: "a", projectPath: "some/where" })).toEqual([
    400,
    expect.stringContaining("not a whole path"),
  ]);
  expect(await post("/api/squads", { name: "a", projectPath: folder, slug: "a/b/../c" })).toEqual([
    400,
    expect.stringContaining('"a-b-c" would do'),
  ]);
  expect(await post("/api/squads", { name: "a", projectPath: folder, universe: "smurfs" })).toEqual([
    400,
    expect.stringContaining("universe"),
  ]);
  expect(await daemon.json("GET", "/api/squads")).toEqual({ items: [] });

  expect((await post("/api/squads", { name: "My App!", projectPath: folder }))[0]).toBe(201);
  expect(await post("/api/squads/my-app/tasks", { task: "go" })).toEqual([409, expect.stringContaining("has no agents yet")]);
  expect(await post("/api/squads/my-app/agents", { roleTitle: "x", charter: "y", modelTier: "huge" })).toEqual([
    400,
    expect.stringMatching(/high.*medium.*low/),
  ]);
  expect(await post("/api/squads/my-app/agents", { roleTitle: "x", charter: "y".repeat(100_000) })).toEqual([
    400,
    expect.stringContaining("at most 8000"),
  ]);
  expect(await post("/api/squads/my-app/agents", { roleTitle: "x", charter: "  " })).toEqual([
    400,
    expect.stringContaining("charter is empty"),
  ]);
  expect(await daemon.json("GET", "/api/squads/my-app/agents")).toEqual({ items: [] });
  expect((await post("/api/squads/my-app/agents", { roleTitle: "Engineer", charter: "All." }))[0]).toBe(201);
  for (const path of ["/proc", "/sys", "/dev"]) {
    const refused = [400, expect.stringMatching(/holds devices or processes, not a project\. Give the folder of one project/)];
    expect(await post("/api/analyze", { projectPath: path })).toEqual(refused);
    expect(await post("/api/squads", { name: "Kernel", projectPath: path })).toEqual(refused);
  }
  expect(await post("/api/squads/my-app/tasks", { task: "go", agent: "Gargamel" })).toEqual([
    404,
    expect.stringContaining("Hannibal (Engineer)"),
  ]);
  expect(await post("/api/squads/my-ap/tasks", { task: "go" })).toEqual([404, expect.stringContaining('Did you mean "my-app"?')]);
  expect((await daemon.fetch("/api/squads/my-app/agents/Gargamel", { method: "DELETE" })).status).toBe(404);
  expect((await daemon.fetch("/api/squads/a%2Fb")).status).toBe(404);
  rmSync(folder, { recursive: true });
  expect(await post("/api/squads/my-app/tasks", { task: "go" })).toEqual([409, expect.stringContaining("is not there any more")]);
  expect(await daemon.json("GET", "/api/tasks")).toEqual({ items: [] });
});

test("the model is told the same when it asks for what cannot be done", async () => {
  const calls = [
    { tool: "squad_create", args: { name: "a", project_path: "/no/such/folder" } },
    { tool: "squad_create", args: { name: "a", project_path: "/tmp", slug: "a/b" } },
    { tool: "squad_recall", args: { slug: "nobody" } },
    { tool: "squad_add_agent", args: { slug: "one", role_title: "x", charter: "y", model_tier: "huge" } },
    { tool: "squad_delegate", args: { slug: "one", task: "go", agent: "Gargamel" } },
    { tool: "squad_task_status", args: { task_id: "t_none" } },
  ];
  const model = await scriptedModel((request) => {
    const call = calls[stepOf(request)];
    return call ? { call: [call] } : { say: "I see." };
  });
  const daemon = await daemonOn(model);
  await squadWith(daemon, project(), "one", ["Engineer"]);
  expect((await daemon.ask({ text: "try" })).status).toBe("done");
  const answers = model.requests.slice(1).map(lastResult);
  expect(answers[0]).toContain("there is no such folder");
  expect(answers[1]).toContain('"a-b" would do');
  expect(answers[2]).toContain('There is no squad called "nobody"');
  expect(answers[3]).toMatch(/high.*medium.*low/);
  expect(answers[4]).toContain("Hannibal (Engineer)");
  expect(answers[5]).toContain("There is no task");
  expect((await daemon.json<{ items: unknown[] }>("GET", "/api/squads")).items).toHaveLength(1);
});

test("work for a squad without agents brings those that fit its project, once, and none where the project is gone", async () => {
  const folder = project({ "package.json": '{"name":"shop","scripts":{"test":"node --test"}}', "src/index.js": "export {};\n" });
  const gone = project();
  const delegated = (slug: string, task: string) => ({ tool: "squad_delegate", args: { slug, task } });
  const model = await scriptedModel((request) => {
    if (characterOf(request)) return { say: "It is done." };
    if (lastUserText(request).includes("[via background]")) return { say: "Told." };
    const call = { 0: [delegated("shop", "Add a login"), delegated("shop", "Add a logout")], 2: [delegated("gone", "Add it")] }[
      stepOf(request)
    ];
    return call ? { call } : { say: "They are on it." };
  });
  const daemon = await daemonOn(model);
  await squadWith(daemon, folder, "shop", []);
  await squadWith(daemon, gone, "gone", []);
  rmSync(gone, { recursive: true });
  const { roster } = await daemon.json<Analysis>("POST", "/api/analyze", { projectPath: folder });
  expect(roster.length).toBeGreaterThan(1);
  const asked = await daemon.ask({ text: "Have the shop get a login and a logout" });
  expect(asked).toMatchObject({ status: "done", route: { answered: "delegated" } });
  const { items } = await daemon.json<{ items: Agent[] }>("GET", "/api/squads/shop/agents");
  expect(items.map(({ roleTitle, charter, modelTier }) => ({ roleTitle, charter, modelTier }))).toEqual(
    roster.map(({ roleTitle, charter, modelTier }) => ({ roleTitle, charter, modelTier })),
  );
  const calls = model.requests.flatMap(({ messages }) => messages.filter(({ role }) => role === "tool").map(textOf));
  expect(calls.filter((text) => text.startsWith("The squad had no agents, so these joined: "))).not.toEqual([]);
  expect(calls.some((text) => text.includes("is not there any more"))).toBe(true);
  expect(await daemon.json("GET", "/api/squads/gone/agents")).toEqual({ items: [] });
  expect(asked.route.tasks).toHaveLength(2);
  for (const id of asked.route.tasks) expect(await ended(daemon, id)).toMatchObject({ status: "done", squad: "shop" });
});

test("a task is shown by the end of its activity, however long that is", async () => {
  const home = temporaryHome();
  const database = openStore(join(home, "io.db"));
  const store = createSquadStore(database);
  store.create({ slug: "app", name: "App", projectPath: project(), universe: "aliens" });
  store.insertTask({ id: "t_long", squad: "app", agent: "Ripley", description: "much to do" });
  store.updateTask("t_long", { status: "done", delivered: true, finishedAt: new Date().toISOString() });
  const activity = createTaskActivity(database);
  database.transaction(() => {
    for (let number = 1; number <= 2_100; number += 1) activity.add("t_long", "tool", `step ${number} of it`);
  });
  database.close();
  const daemon = await daemonOn(await scriptedModel(() => ({ say: "ready" })), home);
  const { stdout } = await runIo(["task", "show", "t_long"], daemon.home);
  const steps = [...stdout.matchAll(/step (\d+) of it/g)].map((match) => Number(match[1]));
  expect([steps.length, steps[0], steps.at(-1)]).toEqual([500, 1_601, 2_100]);
  expect(stdout).toContain("… 1600 earlier");
});

test("squads and tasks are managed from the command line", async () => {
  const model = await scriptedModel((request) => (characterOf(request) ? { say: "It is ready." } : { say: "noted" }));
  const daemon = await daemonOn(model);
  const folder = project();
  const io = async (...args: string[]) => runIo(args, daemon.home);
  const made = await io("squad", "create", "My App", folder, "--json");
  expect(JSON.parse(made.stdout)).toMatchObject({ slug: "my-app", projectPath: folder });
  await daemon.json("POST", "/api/squads/my-app/agents", { roleTitle: "Engineer", charter: "All." });
  const task = JSON.parse((await io("squad", "delegate", "my-app", "do it", "--json")).stdout) as Task;
  await ended(daemon, task.id);
  expect((await io("squad", "list")).stdout).toContain(`my-app  idle  My App  ${folder}`);
  expect((await io("squad", "show", "my-app")).stdout).toContain("Hannibal, Engineer");
  expect((await io("task", "list")).stdout).toContain(
    `${task.id}  ! done, unproven (claimed done; no test command was run)  my-app/Hannibal  do it`,
  );
  expect((await io("task", "show", task.id)).stdout).toContain("It is ready.");
  expect(await io("task", "cancel", task.id)).toMatchObject({ code: 1, stderr: expect.stringContaining("done already") });
  expect(await io("squad", "delete", "my-app")).toMatchObject({ code: 2, stderr: expect.stringContaining("--yes") });
  expect(await io("squad", "delete", "my-app", "--yes", "--json")).toMatchObject({ code: 0 });
  expect(await io("squad", "show", "my-app")).toMatchObject({ code: 1, stderr: expect.stringContaining("There is no squad") });
  expect((await io("squad", "delegate", "--help")).code).toBe(0);
});
