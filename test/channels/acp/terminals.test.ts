import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { methods } from "@agentclientprotocol/sdk";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import type { ModelServer } from "../../../src/engine/rehearsal/server.ts";
import type { Message } from "../../../src/protocol/messages.ts";
import { type Editor, startEditor } from "../../support/acp.ts";
import { createTestTerminals, type TestTerminals } from "../../support/acp-terminals.ts";
import { approvalsOf, finishedMessage } from "../../support/approvals.ts";
import { startDaemonProcess, type TestDaemon } from "../../support/daemon.ts";
import { collectEndings, temporaryHome } from "../../support/home.ts";
import { scriptedModel } from "../../support/model.ts";
import { callText, journalOf, obedient } from "../../support/orchestrator.ts";
import { killed, sleeping } from "../../support/processes.ts";
import { projectOf } from "../../support/project.ts";
import { until } from "../../support/until.ts";

const { atTheEnd, end } = collectEndings();
afterAll(end);

const KEY = "scripted-key-0123456789";
let daemon: TestDaemon;
let model: ModelServer;
const start = (atTheEnd?: Parameters<typeof startDaemonProcess>[2]) => {
  const provider = { baseUrl: model.url, apiKey: KEY, model: "scripted" };
  return startDaemonProcess(temporaryHome({ mode: "auto", acpTerminal: true, provider }, atTheEnd), {}, atTheEnd);
};
beforeAll(async () => {
  model = await scriptedModel(obedient, undefined, atTheEnd);
  daemon = await start(atTheEnd);
});

const set = (of: TestDaemon, acpTerminal: boolean) => of.json("PATCH", "/api/config", { acpTerminal });

/** Starts an editor, with these terminals if given, and a session in a new project. */
async function inProject(terminals: TestTerminals | undefined, of: TestDaemon = daemon) {
  const editor = await startEditor(of.home, {}, undefined, undefined, terminals);
  const cwd = projectOf({ "package.json": "{}", "words.txt": "words to read\n" });
  const { sessionId } = await editor.agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
  const ask = (text: string) =>
    editor.agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
  const run = (command: string, more: object = {}) => ask(callText("shell", { command, ...more }));
  /** Runs a command and allows it once. */
  const allowed = async (command: string, more: object = {}) => {
    const count = editor.permissions.length;
    const answer = run(command, more);
    await allow(editor, count);
    return answer;
  };
  return { editor, cwd, sessionId, ask, run, allowed };
}
async function allow(editor: Editor, index: number) {
  const { request, answer } = await until("a question", () => editor.permissions[index]);
  answer({ outcome: "selected", optionId: "allow-once" });
  return request;
}
/** What an editor shows of its latest call, and all updates of that call. */
function latestCall(editor: Editor, session: string) {
  const told = editor.updates.flatMap(({ session: of, update }) =>
    of === session && (update.sessionUpdate === "tool_call" || update.sessionUpdate === "tool_call_update") ? [update] : [],
  );
  const id = told.at(-1)!.toolCallId;
  const updates = told.filter(({ toolCallId }) => toolCallId === id);
  const shown: Record<string, unknown> = Object.assign({}, ...updates);
  return { updates, shown };
}
const latestMessage = async (of: TestDaemon, conversation: string) =>
  (await of.json<{ items: Message[] }>("GET", `/api/messages?conversation=${conversation}`)).items[0]!;

test("with acpTerminal a command runs in the editor's terminal: asked as without a sandbox, shown there, and read without secrets", async () => {
  const terminals = createTestTerminals();
  const { editor, cwd, sessionId, run } = await inProject(terminals);

  // As wherever there is no sandbox, nobody is asked about a command that is known to only read.
  await run("cat words.txt");
  expect(editor.permissions).toHaveLength(0);
  expect(editor.said(sessionId)).toMatch(/exit code: 0[\s\S]*words to read/);
  expect(terminals.all[0]).toMatchObject({
    request: { sessionId, cwd, args: ["-c", "cat words.txt"], outputByteLimit: 64_000 },
    isReleased: true,
  });
  const [, shows, ends] = latestCall(editor, sessionId).updates;
  expect(shows).toMatchObject({ content: [{ type: "terminal", terminalId: "terminal-1" }] });
  // Editors drop an update that names a released terminal.
  expect(ends).toEqual({ sessionUpdate: "tool_call_update", toolCallId: shows!.toolCallId, status: "completed" });

  const nasty = `echo made > made.txt; printf '\\033]0;title\\007\\033[31mred\\033[0m ${KEY.slice(0, 9)}'; echo ${KEY.slice(9)}; exit 3`;
  const answer = run(nasty);
  const asked = await until("a question", () => editor.permissions[0]);
  const words = JSON.stringify(asked.request.toolCall.content);
  expect(words).toContain("there is no sandbox in the editor's terminal, and it may do more than read");
  expect(terminals.all).toHaveLength(1);
  asked.answer({ outcome: "selected", optionId: "allow-once" });
  await answer;
  expect(readFileSync(join(cwd, "made.txt"), "utf8")).toBe("made\n");
  const told = model.requests.at(-1)!.messages.at(-1);
  expect(JSON.stringify(told)).toMatch(/exit code: 3.*red \[secret\]/);
  expect(JSON.stringify(told)).not.toMatch(/scripted-key|\\u001b|\\u0007|\\r/);
  expect(latestCall(editor, sessionId).shown).toMatchObject({
    status: "completed",
    content: [{ type: "terminal", terminalId: "terminal-2" }],
  });
  for (const [name, value] of [
    ["CI", "true"],
    ["PAGER", "cat"],
  ])
    expect(terminals.all[1]!.request.env).toContainEqual({ name, value });

  // The output that the model reads is limited, as for any other command.
  const loud = run("seq 30000");
  await loud;
  const long = model.requests.at(-1)!.messages.at(-1)!.content as string;
  expect(long).toMatch(/the beginning is missing[\s\S]*characters left out[\s\S]*30000/);
  expect(long.length).toBeLessThan(9_000);

  // The user may deny a command in the editor. Some commands are refused without asking anyone.
  const denied = run("touch denied.txt");
  (await until("a question", () => editor.permissions[1])).answer({ outcome: "selected", optionId: "deny" });
  await denied;
  await run(`rm -rf ${homedir()}`);
  expect(editor.permissions).toHaveLength(2);
  expect(terminals.all).toHaveLength(3);
  expect(existsSync(join(cwd, "denied.txt"))).toBe(false);
});

test("without the key, without the capability, in the background and in a workspace a command runs in the sandbox", async () => {
  const terminals = createTestTerminals();
  const able = await inProject(terminals);
  // The command must show whether it runs in the sandbox: outside it, a command sees every process.
  const look = "echo the first process is $(cat /proc/1/comm); touch here.txt";
  const first = readFileSync("/proc/1/comm", "utf8").trim();
  const isHeld = ({ editor, sessionId }: typeof able) =>
    /the first process is (\S+)/.exec(editor.said(sessionId))?.[1] !== first && !/Read-only/.test(editor.said(sessionId));

  await set(daemon, false);
  await able.run(look);
  expect([isHeld(able), able.editor.permissions.length, terminals.all.length]).toEqual([true, 0, 0]);
  await set(daemon, true);

  const unable = await inProject(undefined);
  await unable.run(look);
  expect([isHeld(unable), unable.editor.permissions.length]).toEqual([true, 0]);

  const background = await inProject(terminals);
  await background.run(look, { background: true });
  expect([isHeld(background), background.editor.permissions.length, terminals.all.length]).toEqual([true, 0, 0]);

  await daemon.json("PATCH", "/api/config", { sandbox: "workspace" });
  const workspace = await inProject(terminals);
  await workspace.run(look);
  expect([isHeld(workspace), workspace.editor.permissions.length, terminals.all.length]).toEqual([true, 0, 0]);
  await daemon.json("PATCH", "/api/config", { sandbox: null });

  // If nobody may be asked, commands run in the sandbox instead.
  await daemon.json("PATCH", "/api/config", { sandbox: "project", approvals: "none" });
  const unasked = await inProject(terminals);
  await unasked.run(look);
  expect([isHeld(unasked), terminals.all.length]).toEqual([true, 0]);
  await daemon.json("PATCH", "/api/config", { sandbox: null, approvals: null });
});

test("a stop and a deadline kill the command in the terminal, with all that it started", async () => {
  const terminals = createTestTerminals();
  const { editor, sessionId, allowed, run } = await inProject(terminals);
  await allowed("touch begun.txt; echo begun; sleep 7417.25 & sleep 7417.5", { timeout_secs: 1 });
  expect(editor.said(sessionId)).toMatch(/did not end within 1 s and was stopped[\s\S]*begun/);
  await until("the release", () => terminals.all[0]!.isReleased);
  expect(terminals.all[0]!.isKilled).toBe(true);
  expect(await sleeping("7417.")).toBe(0);
  expect(latestCall(editor, sessionId).shown).toMatchObject({ status: "failed" });

  const stopped = run("touch begun.txt; sleep 7418.25 & sleep 7418.5");
  await allow(editor, 1);
  await until("the command", async () => (await sleeping("7418.")) === 2);
  await editor.agent.notify(methods.agent.session.cancel, { sessionId });
  expect(await stopped).toEqual({ stopReason: "cancelled" });
  await until("the end of both", async () => (await sleeping("7418.")) === 0);
  await until("the release", () => terminals.all[1]!.isReleased);
  expect(terminals.all[1]!.isKilled).toBe(true);

  // An editor that ignores the kill is not waited for, and its processes are killed anyway.
  terminals.isDeafToKill = true;
  const deaf = run("touch begun.txt; sleep 7419.5", { timeout_secs: 1 });
  await allow(editor, 2);
  await deaf;
  expect(editor.said(sessionId)).toContain("nobody knows how it ended");
  expect(await sleeping("7419.5")).toBe(0);
});

test("an editor that starts nothing has run nothing, and the model is told so", async () => {
  const terminals = createTestTerminals();
  terminals.refusal = new Error("no terminals \u001b[31m today");
  const { editor, sessionId, allowed } = await inProject(terminals);
  await allowed("touch never.txt");
  expect(editor.said(sessionId)).toContain("The command could not be started");
  expect(latestCall(editor, sessionId).shown).toMatchObject({ status: "failed" });
  expect(journalOf(daemon.home, (await latestMessage(daemon, sessionId)).id)).toEqual([{ tool: "shell", state: "failed" }]);
});

test("a command whose editor goes away in the middle is told as unknown, ended, and not run again", async () => {
  const terminals = createTestTerminals();
  const { editor, cwd, sessionId, run } = await inProject(terminals);
  void run("echo once >> count.txt; sleep 7420.5").catch(() => undefined);
  await allow(editor, 0);
  await until("the command", () => existsSync(join(cwd, "count.txt")));
  editor.kill();
  const { id } = await latestMessage(daemon, sessionId);
  const { reply } = await finishedMessage(daemon, id);
  expect(reply).toContain("nobody knows how it ended");
  expect(journalOf(daemon.home, id)).toEqual([{ tool: "shell", state: "unknown" }]);
  expect(readFileSync(join(cwd, "count.txt"), "utf8")).toBe("once\n");
  expect(await sleeping("7420.5")).toBe(0);

  // Until an editor is back, the conversation's commands run in the sandbox, where no approval is needed.
  const text = callText("shell", { command: "echo again >> count.txt" });
  await daemon.ask({ text, conversation: sessionId, source: "tui" });
  expect(readFileSync(join(cwd, "count.txt"), "utf8")).toBe("once\nagain\n");
  expect(await approvalsOf(daemon, "waiting")).toEqual([]);
});

test("of two editors in one conversation one runs the command, once", async () => {
  const terminals = createTestTerminals();
  const { editor, cwd, sessionId, ask, run } = await inProject(terminals);
  await ask("hello");
  const others = createTestTerminals();
  const other = await startEditor(daemon.home, {}, undefined, undefined, others);
  await other.agent.request(methods.agent.session.load, { sessionId, cwd, mcpServers: [] });
  const done = run("echo once >> count.txt");
  await allow(editor, 0);
  await done;
  expect(readFileSync(join(cwd, "count.txt"), "utf8")).toBe("once\n");
  expect(terminals.all.length + others.all.length).toBe(1);
});

test("after a kill of the daemon the command is ended, its outcome unknown, and it is not run again", async () => {
  const first = await start(onTestFinished);
  const terminals = createTestTerminals();
  const { editor, cwd, sessionId, run } = await inProject(terminals, first);
  const answer = run("echo once >> count.txt; sleep 7421.5");
  await allow(editor, 0);
  await until("the command", () => existsSync(join(cwd, "count.txt")));
  const { id } = await latestMessage(first, sessionId);
  await killed(first.child);
  const second = await startDaemonProcess(first.home);
  expect(await answer).toEqual({ stopReason: "end_turn" });
  await until("the end of the command", async () => (await sleeping("7421.5")) === 0);
  expect(readFileSync(join(cwd, "count.txt"), "utf8")).toBe("once\n");
  expect(terminals.all).toHaveLength(1);
  expect(journalOf(second.home, id)).toMatchObject([{ tool: "shell", state: "unknown" }]);
});
