import { afterAll, expect, test } from "vitest";
import { estimateTokens } from "../../src/lib/estimate-tokens.ts";
import type { TodoList } from "../../src/protocol/todo.ts";
import type { ContextUse } from "../../src/protocol/turns.ts";
import { providerEnvironment, startDaemonProcess } from "../support/daemon.ts";
import { collectEndings, temporaryHome } from "../support/home.ts";
import { isAfterTool, lastUserText, scriptedModel } from "../support/model.ts";
import { systemOf } from "../support/orchestrator.ts";
import { delegate, ended, project, squadWith } from "../support/squads.ts";
import { until } from "../support/until.ts";

const { atTheEnd, end } = collectEndings();
afterAll(end);

const home = temporaryHome({}, atTheEnd);
const model = await scriptedModel(
  (request) => {
    if (isAfterTool(request)) return { say: "Kept." };
    const list = /todo: (\[.*\])/s.exec(lastUserText(request))?.[1];
    if (list) return { call: [{ tool: "todo", args: { items: JSON.parse(list) } }] };
    if (lastUserText(request).includes("wait here")) return { call: [{ tool: "shell", args: { command: "sleep 60" } }] };
    return { say: "Noted." };
  },
  {},
  atTheEnd,
);
let daemon = await startDaemonProcess(home, providerEnvironment(model.url), atTheEnd);
const say = (text: string, conversation: string) => daemon.ask({ text, conversation });
const asked = () => JSON.stringify(model.requests.at(-1)!.messages);
const todoOf = (conversation: string) => daemon.json<TodoList>("GET", `/api/conversations/${conversation}/todo`);
const contextOf = async (conversation: string) =>
  (await daemon.json<{ context: ContextUse | null }>("GET", `/api/conversations/${conversation}/context`)).context;

const STEPS = [
  { text: "Read the code", state: "done" },
  { text: "Mend it with scripted-key-0123456789", state: "running" },
  { text: "Test it", state: "open" },
];

test("a to-do list is kept with its conversation, told as it changes, and known after a restart and in a shortened window", async () => {
  const events = await daemon.follow({ conversation: "steps" });
  await say(`todo: ${JSON.stringify(STEPS)}`, "steps");
  await until("the event", () => events.of("todo.changed").length === 1);
  const kept = await todoOf("steps");
  expect(kept.items.map(({ state }) => state)).toEqual(["done", "running", "open"]);
  expect(JSON.stringify([kept, events.of("todo.changed")[0]!.body])).not.toContain("scripted-key-0123456789");
  expect(await todoOf("other")).toEqual({ items: [] });

  await daemon.kill("SIGTERM");
  daemon = await startDaemonProcess(home, providerEnvironment(model.url), atTheEnd);
  expect((await todoOf("steps")).items).toHaveLength(3);
  await daemon.json("POST", "/api/conversations/steps/compact");
  await say("go on", "steps");
  expect(systemOf(model.requests.at(-1)!)).toMatch(/to-do list of this conversation\n☑ Read the code\n▸ Mend it .*\n☐ Test it/);
  await say(`todo: ${JSON.stringify([{ text: "Read the code", state: "done" }])}`, "steps");
  await say("anything else?", "steps");
  expect(systemOf(model.requests.at(-1)!)).not.toContain("to-do list of this conversation");
  await daemon.json("DELETE", "/api/conversations/steps");
  expect(await todoOf("steps")).toEqual({ items: [] });
});

test("an agent keeps the list of its task, and nobody is asked about it in any mode", async () => {
  await squadWith(daemon, project({ "a.txt": "a\n" }, atTheEnd), "listing", ["Engineer"]);
  await daemon.json("PATCH", "/api/config", { mode: "ask" });
  const { id } = await delegate(daemon, "listing", { task: `todo: ${JSON.stringify(STEPS.slice(2))}` });
  expect((await ended(daemon, id)).status).toBe("done");
  expect(await daemon.json("GET", `/api/tasks/${id}/todo`)).toEqual({ items: [{ text: "Test it", state: "open" }] });
  expect((await daemon.fetch("/api/tasks/t_nobody/todo")).status).toBe(404);
  await daemon.json("PATCH", "/api/config", { mode: null });
});

test("compact keeps what was said in a smaller window, clear begins with nothing of it, and both keep the messages", async () => {
  const long = `${"alpha beta gamma ".repeat(3_000)} The end.`;
  const first = `The code word is OCHRE-12. ${long}`;
  await say(first, "window");
  await say("and more", "window");
  const before = (await contextOf("window"))!;
  await daemon.json("POST", "/api/conversations/window/compact");
  expect(await contextOf("window")).toBeNull();
  await say("What was the code word?", "window");
  expect(asked()).toContain("OCHRE-12");
  expect((await contextOf("window"))!.total).toBeLessThan(before.total / 2);

  await daemon.json("POST", "/api/conversations/window/clear");
  await say("Hello again", "window");
  expect(asked()).not.toContain("OCHRE-12");
  const { items } = await daemon.json<{ items: { text: string }[] }>("GET", "/api/messages?conversation=window&limit=50");
  expect(items.map(({ text }) => text)).toContain(first);
  await say("Once more", "window");
  expect(asked()).toContain("Hello again");
});

test("in a window of 4,096 tokens the instructions and the tools that matter most take at most 1,500", async () => {
  const models = [{ id: "scripted", contextWindow: 4_096 }];
  const provider = { baseUrl: model.url, apiKey: "scripted-key-0123456789", model: "scripted", models };
  const small = await startDaemonProcess(temporaryHome({ provider }, atTheEnd), {}, atTheEnd);
  await small.ask({ text: "hello" });
  const request = model.requests.at(-1)!;
  const names = request.tools!.map((tool) => tool.function.name);
  expect(names).toEqual(expect.arrayContaining(["file_ops", "shell", "wiki_search", "wiki_read", "wiki_write"]));
  expect(estimateTokens(systemOf(request)) + estimateTokens(JSON.stringify(request.tools))).toBeLessThanOrEqual(1_500);
});

test("neither is done in the middle of a turn, nor to a conversation that is not there", async () => {
  const { id } = await daemon.json<{ id: string }>("POST", "/api/messages", { text: "wait here", conversation: "busy" });
  await until("the turn", async () => (await daemon.json<{ status: string }>("GET", `/api/messages/${id}`)).status === "running");
  for (const what of ["compact", "clear"]) {
    expect((await daemon.fetch(`/api/conversations/busy/${what}`, { method: "POST" })).status).toBe(409);
    expect((await daemon.fetch(`/api/conversations/nobody/${what}`, { method: "POST" })).status).toBe(404);
  }
  await daemon.json("POST", `/api/messages/${id}/cancel`);
});
