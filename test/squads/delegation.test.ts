import { existsSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { expect, test } from "vitest";
import type { Act } from "../../src/engine/rehearsal/wire.ts";
import type { Message } from "../../src/protocol/messages.ts";
import type { Activity, Agent, Decision, Task } from "../../src/protocol/squads.ts";
import { mannerOf } from "../../src/squads/universes.ts";
import { temporaryHome } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { characterOf, daemonOn, delegate, ended, lastResult, project, squadWith, stepOf, systemOf } from "../support/squads.ts";
import { until } from "../support/until.ts";

test("one chat message forms a squad and delegates; the work is done in the project and its result is told where it was asked", async () => {
  const folder = project({
    "package.json": '{"name":"shop","scripts":{"test":"node --test"}}',
    "src/index.js": "export const a = 1;\n",
  });
  const agent: Act[] = [
    { call: [{ tool: "file_ops", args: { operation: "write", path: "src/login.js", content: "export const login = true;\n" } }] },
    { call: [{ tool: "shell", args: { command: "pwd && ls src" } }] },
    { call: [{ tool: "squad_log_decision", args: { decision: "Login lives in src/login.js", context: "one place" } }] },
    { say: "The login page is there." },
  ];
  const add = (role_title: string) => ({
    tool: "squad_add_agent",
    args: { slug: "shop", role_title, charter: `Owns ${role_title}.` },
  });
  const orchestrator: Act[] = [
    { call: [{ tool: "squad_create", args: { name: "Shop", project_path: folder, universe: "a-team" } }] },
    { call: [{ tool: "squad_analyze", args: { project_path: folder } }] },
    { call: [add("Lead Architect")] },
    { call: [add("Frontend Engineer")] },
    { call: [add("Test Lead")] },
    { call: [{ tool: "squad_delegate", args: { slug: "shop", task: "Build the login page", agent: "Face" } }] },
    { say: "Face is on it." },
  ];
  const model = await scriptedModel((request) => {
    if (characterOf(request)) return agent[stepOf(request)]!;
    if (lastUserText(request).includes("[via background]")) return { say: "Face has built the login page." };
    return orchestrator[stepOf(request)]!;
  });
  const daemon = await daemonOn(model);
  const asking = await daemon.follow({ conversation: "work" });
  const other = await daemon.follow({ conversation: "other" });
  const asked = await daemon.ask({ text: `Please build a login page in ${folder}`, conversation: "work" });
  expect(asked).toMatchObject({ status: "done", reply: "Face is on it.", route: { answered: "delegated" } });

  const { items: people } = await daemon.json<{ items: Agent[] }>("GET", "/api/squads/shop/agents");
  expect(people.map(({ characterName }) => characterName)).toEqual(["Hannibal", "Face", "B.A. Baracus"]);
  const [id] = asked.route.tasks;
  const task = await ended(daemon, id!);
  expect(task).toMatchObject({ status: "done", agent: "Face", result: "The login page is there.", squad: "shop" });
  expect(task.origin).toMatchObject({ conversation: "work", messageId: asked.id });
  expect(readFileSync(join(folder, "src/login.js"), "utf8")).toContain("login = true");
  expect(task.evidence).toMatchObject({
    filesChanged: ["src/login.js"],
    commands: [{ command: "pwd && ls src", exitCode: 0 }],
    verdict: "claimed done; no test command was run",
  });
  expect(task.evidence!.treeBefore).toMatch(/^[0-9a-f]{40}$/);
  expect(task.evidence!.treeAfter).not.toBe(task.evidence!.treeBefore);
  expect(task.usage.calls).toBe(4);
  const shown = model.requests.filter((request) => characterOf(request) === "Face").map(lastResult);
  expect(shown.some((text) => text.includes(`${folder}\nindex.js\nlogin.js`))).toBe(true);

  const { items: decisions } = await daemon.json<{ items: Decision[] }>("GET", "/api/squads/shop/decisions");
  expect(decisions).toMatchObject([{ decision: "Login lives in src/login.js", context: "one place", author: "Face" }]);

  const told = await until("the result to be told", () =>
    asking.of("message.finished").find(({ body }) => (body as unknown as Message).source.channel === "background"),
  );
  expect(told.body).toMatchObject({ conversation: "work", status: "done", reply: "Face has built the login page." });
  expect(String(told.body.text)).toContain("The login page is there.");
  expect(asking.of("task.finished")).toHaveLength(1);
  expect(asking.of("task.progress").some(({ body }) => body.tool === "shell" && String(body.summary).includes("pwd"))).toBe(true);
  expect(other.events.filter(({ event }) => /^(?:task|message)\./.test(event))).toEqual([]);

  const { items: activity } = await daemon.json<{ items: Activity[] }>("GET", `/api/tasks/${id}/activity`);
  expect(activity.map(({ kind }) => kind)).toEqual(expect.arrayContaining(["queued", "started", "model", "tool", "ended"]));
  expect(activity.some(({ summary }) => summary === "write src/login.js")).toBe(true);
  expect(activity.at(-1)).toMatchObject({ kind: "ended", data: { filesChanged: ["src/login.js"] } });
  expect(asking.of("task.progress").at(-1)!.body).toMatchObject({ kind: "ended", filesChanged: ["src/login.js"] });
});

test("an agent is told its manner, role, charter, the project's facts and the last 20 of 25 decisions with their times", async () => {
  const model = await scriptedModel(() => ({ say: "done" }));
  const daemon = await daemonOn(model);
  const folder = project({ "go.mod": "module example.test/app\n", "main.go": "package main\n" });
  await daemon.json("POST", "/api/squads", { name: "app", projectPath: folder, universe: "ghostbusters" });
  await daemon.json("POST", "/api/squads/app/agents", {
    roleTitle: "Concurrency Specialist",
    charter: "Goroutines, channels and everything that can deadlock.",
  });
  for (let index = 1; index <= 25; index += 1) {
    await daemon.json("POST", "/api/squads/app/decisions", { decision: `Rule number ${index}.`, context: `because of ${index}` });
  }
  const task = await ended(daemon, (await delegate(daemon, "app", { task: "look around" })).id);
  expect(task.status).toBe("done");
  const system = systemOf(model.requests.find((request) => characterOf(request))!);
  expect(system).toContain(`You are ${task.agent}, Concurrency Specialist of the squad "app"`);
  expect(system).toContain(mannerOf("ghostbusters", task.agent));
  expect(system).toContain("Goroutines, channels and everything that can deadlock.");
  expect(system).toContain("Go 100 %");
  const told = [...system.matchAll(/^- \[(.+?)\] Rule number (\d+)\. \(because of \d+\)$/gm)];
  expect(told.map((match) => Number(match[2]))).toEqual(Array.from({ length: 20 }, (_, index) => index + 6));
  expect(Date.parse(told[0]![1]!)).toBeGreaterThan(Date.now() - 60_000);
  expect(system).toContain("squad_log_decision");
  const request = model.requests.find((one) => characterOf(one))!;
  expect(request.stream).toBe(true);
  expect(request.tools!.map((tool) => tool.function.name).sort()).toEqual([
    "conversation_search",
    "file_ops",
    "shell",
    "shell_output",
    "shell_stop",
    "squad_log_decision",
    "todo",
    "wiki_list",
    "wiki_read",
    "wiki_search",
    "wiki_source",
    "wiki_write",
  ]);
  const { items } = await daemon.json<{ items: Decision[] }>("GET", "/api/squads/app/decisions?q=because of 7");
  expect(items.map(({ decision }) => decision)).toEqual(["Rule number 7."]);
  type Page = { items: Decision[]; next?: string };
  const first = await daemon.json<Page>("GET", "/api/squads/app/decisions?limit=20");
  const second = await daemon.json<Page>("GET", `/api/squads/app/decisions?limit=20&before=${first.next}`);
  expect([second.items.map(({ decision }) => decision), second.next]).toEqual([
    [5, 4, 3, 2, 1].map((n) => `Rule number ${n}.`),
    undefined,
  ]);
  expect((await daemon.fetch("/api/squads/app/decisions?before=x")).status).toBe(400);
});

test("a task whose last test failed is shown as exactly that, whatever the agent says", async () => {
  const acts: Act[] = [{ call: [{ tool: "shell", args: { command: "npm test" } }] }, { say: "All done, everything works." }];
  const model = await scriptedModel((request) => (characterOf(request) ? acts[stepOf(request)]! : { say: "noted" }));
  const daemon = await daemonOn(model);
  const folder = project({ "package.json": '{"name":"x","scripts":{"test":"exit 1"}}' });
  await squadWith(daemon, folder, "x", ["Engineer"]);
  const task = await ended(daemon, (await delegate(daemon, "x", { task: "make it work", conversation: "c" })).id);
  expect(task).toMatchObject({
    status: "done",
    result: "All done, everything works.",
    evidence: { lastTest: { command: "npm test", exitCode: 1 }, verdict: "claimed done, but `npm test` last exited 1" },
  });
  const told = await until("the result to be told", async () => {
    const { items } = await daemon.json<{ items: Message[] }>("GET", "/api/messages?conversation=c");
    return items[0];
  });
  expect(told.text).toContain("claimed done, but `npm test` last exited 1");
});

test("a test that passed before the last change is not taken for evidence of it", async () => {
  const run: Act = { call: [{ tool: "shell", args: { command: "npm test" } }] };
  const change: Act = {
    call: [{ tool: "file_ops", args: { operation: "write", path: "src/login.js", content: "// ".padEnd(30_000, "x") } }],
  };
  const acts: Record<string, Act[]> = {
    "change last": [run, change, { say: "Done." }],
    "test last": [change, run, { say: "Done." }],
  };
  const model = await scriptedModel((request) => {
    const [, name] = /Task t_\w+: (.*)$/m.exec(lastUserText(request)) ?? [];
    return characterOf(request) ? acts[name!]![stepOf(request)]! : { say: "noted" };
  });
  const daemon = await daemonOn(model);
  await squadWith(daemon, project({ "package.json": '{"name":"x","scripts":{"test":"exit 0"}}' }), "x", ["Engineer"]);
  const verdictOf = async (task: string) => (await ended(daemon, (await delegate(daemon, "x", { task })).id)).evidence?.verdict;
  expect(await verdictOf("change last")).toBe("claimed done; `npm test` exited 0, but src/login.js was written after it");
  expect(await verdictOf("test last")).toBe("done; `npm test` last exited 0");
});

test("a page written by one squad is found by another", async () => {
  const model = await scriptedModel((request) => {
    const prompt = lastUserText(request);
    if (!characterOf(request)) return { say: "noted" };
    if (stepOf(request) > 0) return { say: lastResult(request) };
    return prompt.includes("write it down")
      ? {
          call: [
            {
              tool: "wiki_write",
              args: { path: "general/retries", content: "# Retries\n\nUse exponential backoff with jitter.\n" },
            },
          ],
        }
      : { call: [{ tool: "wiki_search", args: { query: "exponential backoff" } }] };
  });
  const daemon = await daemonOn(model);
  await squadWith(daemon, project(), "one", ["Engineer"]);
  await squadWith(daemon, project(), "two", ["Engineer"]);
  await ended(daemon, (await delegate(daemon, "one", { task: "write it down" })).id);
  const found = await ended(daemon, (await delegate(daemon, "two", { task: "what do we know?" })).id);
  expect(found.result).toContain("general/retries");
});

test("the same task asked for again while it is open is joined, and both who asked are told once", async () => {
  const model = await scriptedModel((request) => (characterOf(request) ? { say: "ready", delayMs: 1_500 } : { say: "noted" }));
  const daemon = await daemonOn(model);
  await squadWith(daemon, project(), "one", ["Engineer", "Tester"]);
  const first = await delegate(daemon, "one", { task: "Fix the login page.", conversation: "a" });
  const second = await delegate(daemon, "one", { task: "  fix the LOGIN   page", conversation: "b" });
  const again = await delegate(daemon, "one", { task: "fix the login page", conversation: "a" });
  const other = await delegate(daemon, "one", { task: "fix the logout page", conversation: "a" });
  expect([second.id, again.id]).toEqual([first.id, first.id]);
  expect(other.id).not.toBe(first.id);
  await Promise.all([ended(daemon, first.id), ended(daemon, other.id)]);
  const about = async (conversation: string) => {
    const { items } = await daemon.json<{ items: Message[] }>("GET", `/api/messages?conversation=${conversation}`);
    return items.filter(({ source }) => isDeepStrictEqual(source, { channel: "background", about: first.id })).length;
  };
  await until("both to be told", async () => (await about("a")) > 0 && (await about("b")) > 0);
  expect([await about("a"), await about("b")]).toEqual([1, 1]);
  expect(model.requests.filter((request) => characterOf(request))).toHaveLength(2);
  const later = await delegate(daemon, "one", { task: "fix the login page", conversation: "a" });
  expect(later.id).not.toBe(first.id);
});

test("a squad is found again by its folder, and deleting it leaves nothing behind but the project's files", async () => {
  const model = await scriptedModel((request) => (characterOf(request) ? { say: "ready", delayMs: 300 } : { say: "noted" }));
  const home = temporaryHome();
  const daemon = await daemonOn(model, home);
  const folder = project();
  await squadWith(daemon, folder, "one", ["Engineer"]);
  const link = join(home, "link");
  symlinkSync(folder, link);
  expect(await daemon.json("POST", "/api/squads", { name: "Another name", projectPath: link })).toMatchObject({ slug: "one" });
  const { id } = await delegate(daemon, "one", { task: "do it" });
  await ended(daemon, id);
  model.play((request) => (characterOf(request) ? { hang: true } : { say: "noted" }));
  const running = await delegate(daemon, "one", { task: "do more" });
  await until("it to run", async () => (await daemon.json<Task>("GET", `/api/tasks/${running.id}`)).status === "running");
  const folders = () => readdirSync(join(home, "sessions", "session-state")).filter((name) => name.startsWith("squad-"));
  expect(folders()).toHaveLength(1);
  expect((await daemon.fetch("/api/squads/one", { method: "DELETE" })).status).toBe(200);
  for (const path of ["/api/squads/one", `/api/tasks/${id}`, `/api/tasks/${running.id}`, `/api/tasks/${id}/activity`])
    expect((await daemon.fetch(path)).status).toBe(404);
  expect(folders()).toEqual([]);
  expect(existsSync(join(folder, "README.md"))).toBe(true);
  expect(await daemon.json("GET", "/api/tasks")).toEqual({ items: [] });
});
