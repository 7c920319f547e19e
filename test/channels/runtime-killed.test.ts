import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { methods } from "@agentclientprotocol/sdk";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Model } from "../../src/engine/rehearsal/wire.ts";
import type { Message } from "../../src/protocol/messages.ts";
import { startEditor } from "../support/acp.ts";
import { finishedMessage } from "../support/approvals.ts";
import { providerEnvironment, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { unmarked } from "../support/data.ts";
import { collectEndings, temporaryFolder, temporaryHome } from "../support/home.ts";
import { isIn, odd } from "../support/mcp/servers.ts";
import { lastUserText, scriptedModel } from "../support/model.ts";
import { callText, journalOf, obedient } from "../support/orchestrator.ts";
import { projectOf } from "../support/project.ts";
import { until } from "../support/until.ts";

const { atTheEnd, end } = collectEndings();
afterAll(end);

/** How often the model was asked for each piece of work. It never answers the first request for one. */
const asks = new Map<string, number>();
const play: Model = (request, index) => {
  const text = lastUserText(request);
  const work = /work of (\w+)/.exec(text)?.[1];
  if (work === undefined) return obedient(request, index);
  const count = (asks.get(work) ?? 0) + 1;
  asks.set(work, count);
  return count === 1 ? { hang: true } : { say: `the work of ${work} is done` };
};

let daemon: TestDaemon;
let notes: string;
beforeAll(async () => {
  const model = await scriptedModel(play, undefined, atTheEnd);
  notes = join(temporaryFolder(atTheEnd), "calls.txt");
  const home = temporaryHome({ mode: "full", mcpServers: { odd: odd("plain", notes) } }, atTheEnd);
  daemon = await startDaemonProcess(home, providerEnvironment(model.url), atTheEnd);
  await isIn(daemon, "odd", "ready");
});

const messagesOf = async (conversation: string) =>
  (await daemon.json<{ items: Message[] }>("GET", `/api/messages?conversation=${conversation}`)).items;

/** Ways to get a message answered in a conversation. */
const WAYS: [string, (text: string) => Promise<{ reply: string; conversation: string }>][] = [
  [
    "v1",
    async (text) => {
      const client = new OpenAI({ apiKey: daemon.token, baseURL: `${daemon.url}/v1`, maxRetries: 0 });
      const messages = [{ role: "user" as const, content: text }];
      const { data, response } = await client.chat.completions.create({ model: "io", messages }).withResponse();
      return { reply: data.choices[0]!.message.content ?? "", conversation: response.headers.get("x-io-conversation")! };
    },
  ],
  [
    "mcp",
    async (text) => {
      const client = new Client({ name: "tests", version: "1" }, { versionNegotiation: { mode: "auto" } });
      const requestInit = { headers: { authorization: `Bearer ${daemon.token}` } };
      await client.connect(new StreamableHTTPClientTransport(new URL(`${daemon.url}/mcp`), { requestInit }));
      const { structuredContent } = await client.callTool({ name: "io_ask", arguments: { text } });
      await client.close();
      return structuredContent as { reply: string; conversation: string };
    },
  ],
  [
    "acp",
    async (text) => {
      const editor = await startEditor(daemon.home);
      const cwd = projectOf({ "package.json": "{}" });
      const { sessionId } = await editor.agent.request(methods.agent.session.new, { cwd, mcpServers: [] });
      await editor.agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text }] });
      return { reply: editor.said(sessionId), conversation: sessionId };
    },
  ],
];

test.each(WAYS)(
  "a runtime that is killed in the middle of a turn over %s loses nothing, and the answer comes once",
  async (way, ask) => {
    const asking = ask(`work of ${way}`);
    await until("the model to be asked", () => asks.get(way) === 1);
    const before = daemon.runtimePid();
    process.kill(before, "SIGKILL");
    const { reply, conversation } = await asking;
    expect(reply).toBe(`the work of ${way} is done`);
    expect(daemon.runtimePid()).not.toBe(before);
    expect(await messagesOf(conversation)).toMatchObject([{ status: "done", reply }]);
    expect(asks.get(way)).toBe(2);
  },
);

test("a runtime that is killed in a call of an MCP server's tool does not have it made again, and the server is still there", async () => {
  const text = callText("mcp__odd__write", { text: "never" });
  const { id } = await daemon.json<{ id: string }>("POST", "/api/messages", { text, conversation: "in-a-call" });
  const made = () => (existsSync(notes) ? readFileSync(notes, "utf8").split('"never"').length - 1 : 0);
  await until("the call", () => made() === 1);
  process.kill(daemon.runtimePid(), "SIGKILL");
  const { status, reply } = await finishedMessage(daemon, id);
  expect(status).toBe("done");
  expect(reply).toMatch(/not known|nobody knows|unknown/i);
  expect(made()).toBe(1);
  expect(journalOf(daemon.home, id)).toContainEqual({ tool: "mcp__odd__write", state: "unknown" });
  const after = await daemon.ask({ text: callText("mcp__odd__write", { text: "after" }), conversation: "in-a-call" });
  expect(unmarked((after.reply ?? "").replace("I read: ", ""))).toBe("wrote after");
});
