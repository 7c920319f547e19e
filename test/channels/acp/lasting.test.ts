import { readFileSync } from "node:fs";
import { join } from "node:path";
import { methods, type SessionUpdate } from "@agentclientprotocol/sdk";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { listSessions } from "../../../src/channels/acp/list.ts";
import type { Model } from "../../../src/engine/rehearsal/wire.ts";
import type { Message } from "../../../src/protocol/messages.ts";
import { type Editor, errorOf, startEditor } from "../../support/acp.ts";
import { asked } from "../../support/approvals.ts";
import { endDaemonOf, providerEnvironment, startDaemonProcess, type TestDaemon } from "../../support/daemon.ts";
import { collectEndings, temporaryHome } from "../../support/home.ts";
import { lastUserText, scriptedModel } from "../../support/model.ts";
import { callText, obedient } from "../../support/orchestrator.ts";
import { projectOf } from "../../support/project.ts";
import { until } from "../../support/until.ts";

const { atTheEnd, end } = collectEndings();
afterAll(end);

const held = new Map<string, () => void>();
const play: Model = async (request, index) => {
  const text = lastUserText(request);
  const word = /hold (\w+)/.exec(text)?.[1];
  if (word !== undefined) await new Promise<void>((go) => held.set(word, go));
  if (/call \S+ [{[]/.test(text) || request.messages.at(-1)?.role === "tool") return obedient(request, index);
  return { say: `You said: ${text.split("] ").at(-1)}` };
};
const isHeld = (word: string) => until(`the model to be asked about ${word}`, () => held.has(word));

let daemon: TestDaemon;
beforeAll(async () => {
  const model = await scriptedModel(play, undefined, atTheEnd);
  daemon = await startDaemonProcess(temporaryHome({ mode: "auto" }, atTheEnd), providerEnvironment(model.url), atTheEnd);
});

const text = (words: string) => [{ type: "text" as const, text: words }];
const ask = (editor: Editor, sessionId: string, words: string) =>
  editor.agent.request(methods.agent.session.prompt, { sessionId, prompt: text(words) });
const open = (editor: Editor, cwd: string) => editor.agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
const load = (editor: Editor, sessionId: string, cwd: string) =>
  editor.agent.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
const messagesOf = async (of: TestDaemon, conversation: string) =>
  (await of.json<{ items: Message[] }>("GET", `/api/messages?conversation=${conversation}&limit=200`)).items.reverse();
/** The conversation as a person would read it. */
const story = (editor: Editor, sessionId: string) =>
  editor.updates.flatMap(({ session, update }) => (session === sessionId ? lineOf(update) : []));
function lineOf(update: SessionUpdate): string[] {
  switch (update.sessionUpdate) {
    case "user_message_chunk":
    case "agent_message_chunk":
      return update.content.type === "text" ? [`${update.sessionUpdate.split("_")[0]}: ${update.content.text}`] : [];
    case "tool_call":
      return [`tool: ${update.title} ${update.status}`];
    default:
      return [];
  }
}

test("a conversation begun elsewhere is listed, loaded with everything in order, gone on with, and read elsewhere again", async () => {
  const cwd = projectOf({ "package.json": "{}", "notes.txt": "a quokka\n" });
  await daemon.json("PATCH", "/api/conversations/from-the-terminal", { folder: cwd });
  const say = (words: string) => daemon.ask({ text: words, conversation: "from-the-terminal", source: "tui" });
  await say("first");
  await say(callText("file_ops", { operation: "read", path: "notes.txt" }));

  const editor = await startEditor(daemon.home);
  const { sessions } = await editor.agent.request(methods.agent.session.list, { cwd });
  expect(sessions).toMatchObject([
    { sessionId: "from-the-terminal", cwd, title: expect.stringContaining("first"), updatedAt: expect.any(String) },
  ]);
  const loaded = await load(editor, "from-the-terminal", cwd);
  expect(loaded.modes?.currentModeId).toBe("default");
  expect(story(editor, "from-the-terminal")).toEqual([
    "user: first",
    "agent: You said: first",
    `user: ${callText("file_ops", { operation: "read", path: "notes.txt" })}`,
    "tool: Read `notes.txt` completed",
    expect.stringMatching(/^agent: I read: .*a quokka/s),
  ]);
  const before = story(editor, "from-the-terminal").length;
  await ask(editor, "from-the-terminal", "third, from the editor");
  // Somebody writes in the terminal while the editor has the conversation open.
  await say("fourth");
  await until("word of the fourth", () => story(editor, "from-the-terminal").length >= before + 3);
  expect(story(editor, "from-the-terminal").slice(before)).toEqual([
    "agent: You said: third, from the editor",
    "user: fourth",
    "agent: You said: fourth",
  ]);
  const all = await messagesOf(daemon, "from-the-terminal");
  expect(all.map(({ source, status }) => [source.channel, status])).toEqual([
    ["tui", "done"],
    ["tui", "done"],
    ["acp", "done"],
    ["tui", "done"],
  ]);

  // When another editor resumes it, nothing is replayed.
  const other = await startEditor(daemon.home);
  await other.agent.request(methods.agent.session.resume, { sessionId: "from-the-terminal", cwd, mcpServers: [] });
  await ask(other, "from-the-terminal", "fifth");
  expect(story(other, "from-the-terminal")).toEqual(["agent: You said: fifth"]);

  for (const unknown of ["acp-nobody", "../../approvals", "", "a b"]) {
    expect(await errorOf(load(editor, unknown, cwd)), unknown).toMatchObject({ code: -32002 });
    const resumed = editor.agent.request(methods.agent.session.resume, { sessionId: unknown, cwd, mcpServers: [] });
    expect(await errorOf(resumed), unknown).toMatchObject({ code: -32002 });
  }
  expect(await errorOf(load(editor, "from-the-terminal", "not/whole"))).toMatchObject({ code: -32602 });
});

test("the list has conversations with a folder and a message, newest first, fifty a page", async () => {
  const known = Array.from({ length: 420 }, (_, index) => ({
    ...{ name: `many-${419 - index}`, folder: index % 4 === 0 ? null : "/a", messages: index % 4 === 1 ? 0 : 1 },
    ...{ title: "a \u001b[31m title", lastMessageAt: "2026-01-01T00:00:00.000Z" },
  }));
  const request = async <T>(_method: string, path: string): Promise<T> => {
    const query = new URL(path, "http://localhost").searchParams;
    const from = known.findIndex(({ name }) => name === query.get("before")) + 1;
    const items = known.slice(from, from + Number(query.get("limit")));
    return { items, ...(from + items.length < known.length && { next: items.at(-1)!.name }) } as T;
  };
  const pages: string[][] = [];
  let cursor: string | null | undefined;
  do {
    const { sessions, nextCursor } = await listSessions({ request }, { cursor });
    pages.push(sessions.map(({ sessionId }) => sessionId));
    expect(JSON.stringify(sessions)).not.toContain("\\u001b");
    cursor = nextCursor;
  } while (cursor);
  const wanted = known.filter(({ folder, messages }) => folder !== null && messages > 0).map(({ name }) => name);
  expect(pages.flat()).toEqual(wanted);
  expect(pages.map(({ length }) => length)).toEqual([50, 50, 50, 50, 10]);

  await daemon.ask({ text: "no folder", conversation: "homeless" });
  await daemon.json("PATCH", "/api/conversations/silent", { folder: projectOf({ "package.json": "{}" }) });
  const editor = await startEditor(daemon.home);
  const everything = await editor.agent.request(methods.agent.session.list, {});
  expect(everything.sessions.map(({ sessionId }) => sessionId)).not.toEqual(expect.arrayContaining(["homeless"]));
  expect(everything.sessions.map(({ sessionId }) => sessionId)).not.toEqual(expect.arrayContaining(["silent"]));
  for (const wrong of [{ cursor: "../x" }, { cursor: "acp-nobody" }, { cwd: "src" }])
    expect(await errorOf(editor.agent.request(methods.agent.session.list, wrong))).toMatchObject({ code: -32602 });
});

test("an editor that is killed finds its turn and its question again; close ends what it began, and nothing else", async () => {
  const cwd = projectOf({ "package.json": "{}" });
  const first = await startEditor(daemon.home);
  const { sessionId } = await open(first, cwd);
  await first.agent.request(methods.agent.session.setMode, { sessionId, modeId: "ask" });
  void ask(first, sessionId, callText("shell", { command: "touch made" })).catch(() => undefined);
  await until("the question", () => first.permissions.length === 1);
  first.kill();

  const second = await startEditor(daemon.home);
  await load(second, sessionId, cwd);
  const { request, answer } = await until("the question again", () => second.permissions[0]);
  expect(request.toolCall.title).toBe("Run `touch made`");
  expect(story(second, sessionId)).toEqual([expect.stringMatching(/^user: call shell/), "tool: Run `touch made` in_progress"]);
  answer({ outcome: "selected", optionId: "allow-once" });
  await until("the answer", () => second.said(sessionId).includes("I read:"));
  await until("the end of the turn", async () => (await messagesOf(daemon, sessionId))[0]?.status === "done");

  const waiting = ask(second, sessionId, "hold closing");
  await isHeld("closing");
  const { id } = await daemon.json<{ id: string }>("POST", "/api/messages", { text: "mine", conversation: sessionId });
  await second.agent.request(methods.agent.session.close, { sessionId });
  expect(await waiting).toEqual({ stopReason: "cancelled" });
  held.get("closing")?.();
  expect(await errorOf(ask(second, sessionId, "gone"))).toMatchObject({ code: -32002 });
  await until("the other message", async () => (await daemon.json<Message>("GET", `/api/messages/${id}`)).status === "done");
  expect((await messagesOf(daemon, sessionId)).map(({ status }) => status)).toEqual(["done", "cancelled", "done"]);
});

test.each(["SIGKILL", "SIGTERM"] as const)(
  "a daemon that ends by %s in the middle of a prompt comes back, and nothing is lost or said twice",
  async (signal) => {
    let asks = 0;
    const model = await scriptedModel((request) => {
      const words = lastUserText(request);
      if (!words.includes("long work")) return { say: `You said: ${words.split("] ").at(-1)}` };
      asks += 1;
      return asks === 1 ? { stall: "half an ans" } : { say: "the work is done" };
    });
    const home = temporaryHome({ mode: "auto" });
    onTestFinished(() => endDaemonOf(home));
    const editor = await startEditor(home, providerEnvironment(model.url));
    const { sessionId } = await open(editor, projectOf({ "package.json": "{}" }));
    const answer = ask(editor, sessionId, "long work");
    await until("the first words", () => editor.said(sessionId).includes("half an ans"));
    const { pid } = JSON.parse(readFileSync(join(home, "daemon.json"), "utf8")) as { pid: number };
    process.kill(pid, signal);
    const second = await startDaemonProcess(home, providerEnvironment(model.url));
    expect(await answer).toEqual({ stopReason: "end_turn" });
    expect(editor.said(sessionId)).toBe("half an ans\n\n---\n\nthe work is done");
    expect(await messagesOf(second, sessionId)).toMatchObject([{ status: "done", reply: "the work is done" }]);

    // A prompt starts a daemon if none is running.
    await second.kill("SIGKILL");
    expect(await ask(editor, sessionId, "anybody?")).toEqual({ stopReason: "end_turn" });
    expect(editor.said(sessionId)).toMatch(/You said: anybody\?$/);
    expect(await editor.close()).toBe(0);
  },
);

test("a daemon that is killed in the middle of a prompt is started again where nobody else does, and the prompt is answered", async () => {
  let asks = 0;
  const model = await scriptedModel(() => {
    asks += 1;
    return asks === 1 ? { stall: "half an ans" } : { say: "the work is done" };
  });
  const home = temporaryHome({ mode: "auto" });
  onTestFinished(() => endDaemonOf(home));
  const editor = await startEditor(home, providerEnvironment(model.url));
  const { sessionId } = await open(editor, projectOf({ "package.json": "{}" }));
  const answer = ask(editor, sessionId, "long work");
  await until("the first words", () => editor.said(sessionId).includes("half an ans"));
  const { pid } = JSON.parse(readFileSync(join(home, "daemon.json"), "utf8")) as { pid: number };
  process.kill(pid, "SIGKILL");
  expect(await answer).toEqual({ stopReason: "end_turn" });
  expect(editor.said(sessionId)).toBe("half an ans\n\n---\n\nthe work is done");
});

test("a stop is answered also while the daemon stands still, and counts once it goes on", async () => {
  const model = await scriptedModel(play);
  const own = await startDaemonProcess(temporaryHome({ mode: "auto" }), providerEnvironment(model.url));
  const editor = await startEditor(own.home);
  const { sessionId } = await open(editor, projectOf({ "package.json": "{}" }));
  const waiting = ask(editor, sessionId, "hold standing");
  await isHeld("standing");
  own.child.kill("SIGSTOP");
  await editor.agent.notify(methods.agent.session.cancel, { sessionId });
  expect(await waiting).toEqual({ stopReason: "cancelled" });
  own.child.kill("SIGCONT");
  await until("the end of the message", async () => (await messagesOf(own, sessionId))[0]?.status === "cancelled");
  held.get("standing")?.();
});

test("an editor that closes its end leaves its work going", async () => {
  const editor = await startEditor(daemon.home);
  const { sessionId } = await open(editor, projectOf({ "package.json": "{}" }));
  void ask(editor, sessionId, "hold leaving").catch(() => undefined);
  await isHeld("leaving");
  expect(await editor.close()).toBe(0);
  expect(await messagesOf(daemon, sessionId)).toMatchObject([{ status: "running" }]);
  held.get("leaving")?.();
  await until("its end", async () => (await messagesOf(daemon, sessionId))[0]?.status === "done");
});

test("a budget that is used up is told with the command that raises it, and no answer of the editor does", async () => {
  const model = await scriptedModel((request) => ({ say: `You said: ${lastUserText(request).split("] ").at(-1)}` }));
  const home = temporaryHome({ mode: "auto", budgets: { conversation: { calls: 1 } } });
  const limited = await startDaemonProcess(home, providerEnvironment(model.url));
  const editor = await startEditor(home);
  const { sessionId } = await open(editor, projectOf({ "package.json": "{}" }));
  await ask(editor, sessionId, "one");
  const waiting = ask(editor, sessionId, "two");
  const [question] = await asked(limited);
  expect(question?.kind).toBe("budget");
  await until("word of it", () => editor.said(sessionId).includes(`io approval allow ${question!.id}`));
  expect(editor.permissions).toEqual([]);
  const as = await limited.fetch(`/api/approvals/${question!.id}`, {
    method: "POST",
    body: JSON.stringify({ decision: "allow" }),
    headers: { "content-type": "application/json", "io-client": "acp" },
  });
  expect(as.status).toBe(403);
  await limited.json("POST", `/api/approvals/${question!.id}`, { decision: "allow" });
  expect(await waiting).toEqual({ stopReason: "end_turn" });
});
