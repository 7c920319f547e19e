import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { methods } from "@agentclientprotocol/sdk";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ModelServer } from "../../../src/engine/rehearsal/server.ts";
import type { Model } from "../../../src/engine/rehearsal/wire.ts";
import type { ConversationInfo } from "../../../src/protocol/conversations.ts";
import type { Message } from "../../../src/protocol/messages.ts";
import { type Editor, errorOf, startEditor } from "../../support/acp.ts";
import { approvalsOf, asked, decide } from "../../support/approvals.ts";
import { startDaemonProcess, type TestDaemon } from "../../support/daemon.ts";
import { collectEndings, temporaryHome } from "../../support/home.ts";
import { lastUserText, scriptedModel } from "../../support/model.ts";
import { callText, obedient, stepwise } from "../../support/orchestrator.ts";
import { projectOf } from "../../support/project.ts";
import { until } from "../../support/until.ts";

const { atTheEnd, end } = collectEndings();
afterAll(end);

const play: Model = (request, index) => {
  const text = lastUserText(request);
  if (text.includes("calls [")) return stepwise(request, index);
  if (/call \S+ [{[]/.test(text) || request.messages.at(-1)?.role === "tool") return obedient(request, index);
  if (text.includes("ponder")) return { think: "let me see", say: "42" };
  return { say: `You said: ${text.split("] ").at(-1)}` };
};

let daemon: TestDaemon;
let model: ModelServer;
beforeAll(async () => {
  model = await scriptedModel(play, { models: ["scripted", "other"] }, atTheEnd);
  const models = [{ id: "scripted", contextWindow: 100_000 }];
  const provider = { baseUrl: model.url, apiKey: "scripted-key-0123456789", model: "scripted", models };
  daemon = await startDaemonProcess(temporaryHome({ mode: "auto", provider }, atTheEnd), {}, atTheEnd);
});

const text = (words: string) => [{ type: "text" as const, text: words }];

/** Starts an editor with a session in a new project. */
async function inProject(files: Record<string, string> = {}) {
  const editor = await startEditor(daemon.home);
  const cwd = projectOf({ "package.json": "{}", ...files });
  const opened = await editor.agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
  const { sessionId } = opened;
  const ask = (words: string) => editor.agent.request(methods.agent.session.prompt, { sessionId, prompt: text(words) });
  return { editor, cwd, sessionId, ask, opened };
}
/** The latest state of every call, according to the updates. */
function callsOf(editor: Editor, session: string) {
  const calls = new Map<string, Record<string, unknown>>();
  for (const { session: of, update } of editor.updates) {
    if (of !== session || (update.sessionUpdate !== "tool_call" && update.sessionUpdate !== "tool_call_update")) continue;
    if (update.sessionUpdate === "tool_call") expect(calls.has(update.toolCallId), "told twice").toBe(false);
    else expect(calls.has(update.toolCallId), "an update of an unknown call").toBe(true);
    calls.set(update.toolCallId, { ...calls.get(update.toolCallId), ...update });
  }
  return [...calls.values()];
}
const question = (editor: Editor, count = 1) =>
  until(`question ${count}`, () => editor.permissions.length >= count && editor.permissions[count - 1]);
const infoOf = (name: string) => daemon.json<ConversationInfo>("GET", `/api/conversations/${name}`);

test("calls of tools are told with titles, kinds, places, arguments, differences and text; steps and thoughts too", async () => {
  const { editor, cwd, sessionId, ask } = await inProject({ "old.txt": "one\ntwo\n" });
  const nasty = "echo '\u001b]0;title\u0007 [click](https://evil.example) `x` '";
  await ask(
    `calls ${JSON.stringify([
      ["file_ops", { operation: "edit", path: "old.txt", edits: [{ old: "two", new: "three" }] }],
      ["file_ops", { operation: "read", path: "old.txt" }],
      ["shell", { command: nasty }],
      ["file_ops", { operation: "read", path: "missing.txt" }],
      [
        "todo",
        {
          items: [
            { text: "look", state: "done" },
            { text: "mend", state: "running" },
            { text: "rest", state: "open" },
          ],
        },
      ],
    ])}`,
  );
  const path = join(cwd, "old.txt");
  const [edit, read, shell, missing, todo] = callsOf(editor, sessionId);
  expect(edit).toMatchObject({
    ...{ kind: "edit", status: "completed", title: "Edit `old.txt`", locations: [{ path }] },
    rawInput: { operation: "edit", path: "old.txt" },
    content: [{ type: "diff", path, oldText: "one\ntwo\n", newText: "one\nthree\n" }],
  });
  expect(read).toMatchObject({ kind: "read", status: "completed", rawInput: { operation: "read" } });
  expect(JSON.stringify(read!.content)).toContain("three");
  expect(shell).toMatchObject({ kind: "execute", status: "completed" });
  // The title is shown literally: nothing in it may become a link.
  expect(shell!.title).toMatch(/^Run `` echo .*\[click\]\(https:\/\/evil\.example\) `x` .* ``$/);
  expect(JSON.stringify([shell!.title, shell!.content])).not.toMatch(/\\u001b|\\u0007/);
  expect(missing).toMatchObject({ status: "failed" });
  expect(todo).toMatchObject({ kind: "think", title: "Write the steps" });
  expect(editor.of(sessionId, "plan").at(-1)?.entries).toEqual([
    { content: "look", priority: "medium", status: "completed" },
    { content: "mend", priority: "medium", status: "in_progress" },
    { content: "rest", priority: "medium", status: "pending" },
  ]);
  expect(editor.of(sessionId, "usage_update").at(-1)).toMatchObject({
    used: expect.any(Number),
    size: expect.any(Number),
  });
  expect(editor.of(sessionId, "usage_update").at(-1)!.size).toBe(100_000);
  expect(readFileSync(path, "utf8")).toBe("one\nthree\n");

  await ask("ponder this");
  expect(editor.said(sessionId, "agent_thought_chunk")).toBe("let me see");
  expect(editor.said(sessionId)).toMatch(/42$/);
});

test("an editor is asked with what would be done, may allow once, for the answer, or deny; nothing of it lasts", async () => {
  const { editor, cwd, sessionId, ask, opened } = await inProject();
  expect(opened.modes).toMatchObject({ currentModeId: "default", availableModes: [{ id: "default" }, { id: "ask" }] });
  await editor.agent.request(methods.agent.session.setMode, { sessionId, modeId: "ask" });
  const touch = (name: string) => callText("shell", { command: `touch ${name}` });

  const first = ask(touch("once"));
  const { request, answer } = await question(editor);
  expect(request).toMatchObject({
    sessionId,
    toolCall: {
      title: "Run `touch once`",
      kind: "execute",
      status: "pending",
      toolCallId: callsOf(editor, sessionId)[0]!.toolCallId,
    },
    options: [
      { optionId: "allow-once", kind: "allow_once" },
      { optionId: "allow-task", kind: "allow_once" },
      { optionId: "deny", kind: "reject_once" },
    ],
  });
  expect(JSON.stringify(request.toolCall.content)).toContain("touch once");
  answer({ outcome: "selected", optionId: "allow-once" });
  expect(await first).toEqual({ stopReason: "end_turn" });
  expect(existsSync(join(cwd, "once"))).toBe(true);
  expect((await infoOf(sessionId)).mode).toBe("ask");
  expect((await approvalsOf(daemon, "allowed"))[0]).toMatchObject({ scope: "once", decidedBy: "acp" });

  // Denying applies to this call only: the turn continues.
  const second = ask(touch("denied"));
  (await question(editor, 2)).answer({ outcome: "selected", optionId: "deny" });
  expect(await second).toEqual({ stopReason: "end_turn" });
  expect(existsSync(join(cwd, "denied"))).toBe(false);
  expect(callsOf(editor, sessionId)[1]).toMatchObject({ status: "failed" });

  // Allowed for this answer: the same command is not asked about again in this turn, but it is in the next.
  const twice = `calls ${JSON.stringify([
    ["shell", { command: "touch task" }],
    ["shell", { command: "touch task" }],
  ])}`;
  const third = ask(twice);
  (await question(editor, 3)).answer({ outcome: "selected", optionId: "allow-task" });
  await third;
  expect(editor.permissions).toHaveLength(3);
  const fourth = ask(touch("task"));
  (await question(editor, 4)).answer({ outcome: "selected", optionId: "deny" });
  await fourth;

  // Options that were not offered, failures and closed questions decide nothing.
  for (const [index, give] of (
    [
      ({ answer }) => answer({ outcome: "selected", optionId: "allow-project" }),
      ({ answer }) => answer({ outcome: "selected", optionId: "constructor" }),
      ({ answer }) => answer({ outcome: "cancelled" }),
      ({ fail }) => fail(new Error("the editor broke down")),
    ] as ((permission: Editor["permissions"][number]) => void)[]
  ).entries()) {
    const waiting = ask(touch(`undecided-${index}`));
    give(await question(editor, 5 + index));
    const [open] = await asked(daemon);
    await until("word that it still waits", () => editor.said(sessionId).includes(`io approval allow ${open!.id}`));
    expect((await approvalsOf(daemon, "waiting")).map(({ id }) => id)).toEqual([open!.id]);
    await decide(daemon, open!.id, { decision: "deny" });
    await waiting;
    expect(existsSync(join(cwd, `undecided-${index}`))).toBe(false);
  }
  expect(await daemon.json<{ items: unknown[] }>("GET", "/api/approvals/rules")).toMatchObject({
    items: expect.not.arrayContaining([expect.objectContaining({ scope: "project" })]),
  });
});

test("a question that is decided elsewhere is taken back; a stop while one waits ends the turn", async () => {
  const { editor, cwd, sessionId, ask } = await inProject();
  await editor.agent.request(methods.agent.session.setMode, { sessionId, modeId: "ask" });
  const first = ask(callText("file_ops", { operation: "write", path: "new.txt", content: "hello\n" }));
  const { request, signal } = await question(editor);
  expect(request.toolCall).toMatchObject({ kind: "edit", locations: [{ path: join(cwd, "new.txt") }] });
  expect(JSON.stringify(request.toolCall.content)).toContain("hello");
  const [open] = await asked(daemon);
  await decide(daemon, open!.id, { decision: "allow" });
  await first;
  await until("the question to be taken back", () => signal.aborted);
  expect(readFileSync(join(cwd, "new.txt"), "utf8")).toBe("hello\n");

  const second = ask(callText("shell", { command: "touch never" }));
  const again = await question(editor, 2);
  await editor.agent.notify(methods.agent.session.cancel, { sessionId });
  expect(await second).toEqual({ stopReason: "cancelled" });
  await until("the question to be taken back", () => again.signal.aborted);
  expect(callsOf(editor, sessionId).at(-1)).toMatchObject({ status: "failed" });
  expect(existsSync(join(cwd, "never"))).toBe(false);
  expect(await approvalsOf(daemon, "waiting")).toEqual([]);
});

test("an editor makes a conversation stricter, takes that back, and never makes it looser", async () => {
  const { editor, sessionId, ask, opened } = await inProject();
  const { agent } = editor;
  const setMode = (modeId: string) => agent.request(methods.agent.session.setMode, { sessionId, modeId });
  const set = (configId: string, value: string) =>
    agent.request(methods.agent.session.setConfigOption, { sessionId, configId, value });
  expect(opened.configOptions).toMatchObject([
    { id: "mode", currentValue: "default" },
    { id: "model", currentValue: "default", options: [{ value: "default" }, { value: "scripted" }, { value: "other" }] },
  ]);
  for (const unknown of ["full", "auto", "plan", "__proto__", ""])
    expect(await errorOf(setMode(unknown)), unknown).toMatchObject({ code: -32602 });
  // Before the first prompt, settings are only remembered. The first prompt stores them.
  expect(await set("mode", "ask")).toMatchObject({ configOptions: [{ id: "mode", currentValue: "ask" }, {}] });
  // An editor that shows modes and options has both right.
  expect(editor.of(sessionId, "current_mode_update").at(-1)).toMatchObject({ currentModeId: "ask" });
  await set("model", "other");
  await ask("hello");
  expect(await infoOf(sessionId)).toMatchObject({ mode: "ask", model: "other" });
  await setMode("default");
  const { configOptions } = editor.of(sessionId, "config_option_update").at(-1)!;
  expect(configOptions).toMatchObject([
    { id: "mode", currentValue: "default" },
    { id: "model", currentValue: "other" },
  ]);
  await set("model", "default");
  expect(await infoOf(sessionId)).toMatchObject({ mode: null, model: null });
  expect(await errorOf(set("model", "no-such"))).toMatchObject({ code: -32602 });
  expect(await errorOf(set("budget", "1"))).toMatchObject({ code: -32602 });

  // A setting made by a person elsewhere stays, even if the editor had set the same value, and the editor is notified.
  await setMode("ask");
  for (const mode of ["plan", "ask"]) {
    await daemon.json("PATCH", `/api/conversations/${sessionId}`, { mode });
    const shown = mode === "ask" ? "ask" : "default";
    await until(`word of mode ${mode}`, () => editor.of(sessionId, "current_mode_update").at(-1)?.currentModeId === shown);
    const { code, message } = await errorOf(setMode(mode === "ask" ? "default" : "ask"));
    expect([code, message]).toEqual([-32602, expect.stringMatching(/io conversation set|stricter/)]);
    expect((await infoOf(sessionId)).mode).toBe(mode);
  }
});

test("nothing that only a person may give can be given from an editor or over MCP, whoever says so", async () => {
  const { editor, sessionId, ask } = await inProject();
  await editor.agent.request(methods.agent.session.setMode, { sessionId, modeId: "ask" });
  const asking = ask(callText("shell", { command: "touch x" }));
  await question(editor);
  const [open] = await asked(daemon);
  const as = (client: string, body: unknown) =>
    daemon.fetch(`/api/approvals/${open!.id}`, {
      method: "POST",
      body: JSON.stringify(body),
      headers: { "content-type": "application/json", "io-client": client },
    });
  expect((await as("acp", { decision: "allow", scope: "project" })).status).toBe(403);
  expect((await as("mcp", { decision: "allow" })).status).toBe(403);
  expect((await as("mcp", { decision: "deny" })).status).toBe(403);
  // A text message cannot decide either.
  const other = await inProject();
  await other.ask(`/allow ${open!.id}`);
  expect((await approvalsOf(daemon, "waiting")).map(({ id }) => id)).toEqual([open!.id]);
  await decide(daemon, open!.id, { decision: "deny" });
  await asking;

  const before = readFileSync(join(daemon.home, "config.json"), "utf8");
  await other.ask(callText("config_update", { key: "mode", value: "full" }));
  expect(other.editor.said(other.sessionId)).toContain("only a person may");
  expect(readFileSync(join(daemon.home, "config.json"), "utf8")).toBe(before);
});

test("commands of the editor are offered, and done without the model where that is enough", async () => {
  const { editor, sessionId, ask } = await inProject();
  const names = await until("the commands", () => editor.of(sessionId, "available_commands_update")[0]?.availableCommands);
  expect(names.map(({ name }) => name)).toEqual(["squad", "delegate", "swarm", "remember", "recall", "approvals", "status"]);
  await daemon.json("PUT", "/api/wiki/pages/animals/quokka.md", { content: "# Quokkas\n\nsmile" });
  const answers: [string, string][] = [
    ["/status", "model scripted"],
    ["/approvals", "Nothing waits for you."],
    ["/squad", "There are no squads yet"],
    ["/recall quokka", "animals/quokka.md"],
  ];
  for (const [words, told] of answers) {
    const before = editor.said(sessionId).length;
    expect(await ask(words)).toEqual({ stopReason: "end_turn" });
    expect(editor.said(sessionId).slice(before)).toContain(told);
  }
  const { items } = await daemon.json<{ items: Message[] }>("GET", `/api/messages?conversation=${sessionId}`);
  expect(items).toEqual([]);
  expect(await errorOf(ask("/delegate nobody"))).toMatchObject({ message: expect.stringContaining("<squad> <task>") });
  expect(await errorOf(ask("/delegate nobody do it"))).toMatchObject({ code: -32603 });
  await ask("/remember tea, not coffee");
  expect(editor.said(sessionId)).toContain("tea, not coffee");
  // Text that looks like a path, or is not a command, is sent unchanged.
  await ask("/usr/bin is a folder");
  expect(editor.said(sessionId)).toContain("You said: /usr/bin is a folder");
});
