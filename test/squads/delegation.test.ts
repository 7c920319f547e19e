import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Act } from "../../src/engine/rehearsal/wire.ts";
import type { Message } from "../../src/protocol/messages.ts";
import type { Activity, Agent, Decision, Task } from "../../src/protocol/squads.ts";
import { providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { until } from "../support/until.ts";
import { characterOf, delegate, ended, lastResult, project, squadWith, stepOf, systemOf } from "./support.ts";

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
  const daemon = await startDaemonProcess(temporaryHome(), providerEnvironment(model.url));
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
});
