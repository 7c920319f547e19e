import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OldStdioTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as OldHttpTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Model } from "../../../src/engine/rehearsal/wire.ts";
import type { Message } from "../../../src/protocol/messages.ts";
import type { MadeClientToken } from "../../../src/protocol/tokens.ts";
import { approvalsOf, asked, decide, finishedMessage } from "../../support/approvals.ts";
import {
  cleanEnvironment,
  endDaemonOf,
  IO,
  providerEnvironment,
  startDaemonProcess,
  type TestDaemon,
} from "../../support/daemon.ts";
import { collectEndings, temporaryFolder, temporaryHome } from "../../support/home.ts";
import { lastUserText, scriptedModel } from "../../support/model.ts";
import { callText, obedient } from "../../support/orchestrator.ts";
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
let token: string;
beforeAll(async () => {
  const model = await scriptedModel(play, undefined, atTheEnd);
  const home = temporaryHome({ mode: "full", approvals: "effects" }, atTheEnd);
  daemon = await startDaemonProcess(home, providerEnvironment(model.url), atTheEnd);
  token = (await daemon.json<MadeClientToken>("POST", "/api/tokens", { name: "tests", for: ["mcp"] })).token;
});

interface Called {
  isError?: boolean;
  content: { type: string; text: string }[];
  structuredContent?: Record<string, unknown>;
}
interface Told {
  progress: number;
  message?: string | undefined;
}
interface CallOptions {
  signal?: AbortSignal;
  onprogress?: (progress: Told) => void;
}
/** A client that speaks one of the two protocol versions, over HTTP or to `io mcp`. */
interface Speaker {
  client: Client | OldClient;
  call(name: string, args?: Record<string, unknown>, options?: CallOptions): Promise<Called>;
}
const CLIENT = { name: "tests", version: "1" };
const headers = () => ({ requestInit: { headers: { authorization: `Bearer ${token}` } } });
const program = () => ({
  command: process.execPath,
  args: [IO, "mcp"],
  env: cleanEnvironment(daemon.home) as Record<string, string>,
});

async function modern(transport: StreamableHTTPClientTransport | StdioClientTransport): Promise<Speaker> {
  const client = new Client(CLIENT, { versionNegotiation: { mode: "auto" } });
  await client.connect(transport);
  expect(client.getProtocolEra()).toBe("modern");
  onTestFinished(() => client.close());
  return {
    client,
    call: async (name, args = {}, options) => (await client.callTool({ name, arguments: args }, options)) as Called,
  };
}
async function old(transport: OldHttpTransport | OldStdioTransport): Promise<Speaker> {
  const client = new OldClient(CLIENT);
  // Its types are written for a stricter reading of optional properties.
  await client.connect(transport as Parameters<OldClient["connect"]>[0]);
  onTestFinished(() => client.close());
  return {
    client,
    call: async (name, args = {}, options) => (await client.callTool({ name, arguments: args }, undefined, options)) as Called,
  };
}
const address = () => new URL(`${daemon.url}/mcp`);
const SPEAKERS: [string, () => Promise<Speaker>][] = [
  ["a client of 2026 over HTTP", () => modern(new StreamableHTTPClientTransport(address(), headers()))],
  ["a client of 2025 over HTTP", () => old(new OldHttpTransport(address(), headers()))],
  ["a client of 2026 of io mcp", () => modern(new StdioClientTransport(program()))],
  ["a client of 2025 of io mcp", () => old(new OldStdioTransport(program()))],
];

const TOOLS = [
  ...["io_ask", "io_cancel", "io_delegate", "io_message", "io_squads", "io_status", "io_swarm", "io_swarm_start"],
  ...["io_task", "io_tasks", "io_wiki_read", "io_wiki_search", "io_wiki_write"],
];

describe.each(SPEAKERS)("%s", (who, speak) => {
  test("asks, reads, writes, is told of progress and failures, and cancels", async () => {
    const { client, call } = await speak();
    expect(client.getServerVersion()?.name).toBe("io");
    expect(client.getInstructions()).toContain("io_ask");
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name).sort()).toEqual(TOOLS);
    expect(tools.every(({ outputSchema, annotations }) => outputSchema && annotations?.readOnlyHint !== undefined)).toBe(true);

    const answer = await call("io_ask", { text: "hello" });
    expect(answer.structuredContent).toMatchObject({ status: "done", reply: "You said: hello", approvals: [] });
    expect(JSON.parse(answer.content[0]!.text)).toEqual(answer.structuredContent);
    const { message, conversation } = answer.structuredContent as { message: string; conversation: string };
    expect(conversation).toMatch(/^mcp-/);
    const stored = await daemon.json<Message>("GET", `/api/messages/${message}`);
    expect(stored.source).toEqual({ channel: "mcp" });
    const more = await call("io_ask", { text: "and again", conversation });
    expect(more.structuredContent).toMatchObject({ conversation, reply: "You said: and again" });

    expect((await call("io_status")).structuredContent).toMatchObject({ engine: { model: "scripted" } });
    expect((await call("io_squads")).structuredContent).toEqual({ items: [] });
    expect((await call("io_tasks")).structuredContent).toEqual({ items: [] });
    const path = `from/${who.replaceAll(" ", "-")}.md`;
    expect((await call("io_wiki_write", { path, content: `# Told by ${who}\n\na quokka` })).isError).not.toBe(true);
    expect((await call("io_wiki_read", { path })).structuredContent).toMatchObject({
      content: expect.stringContaining("quokka"),
    });
    const found = await call("io_wiki_search", { query: "quokka" });
    expect(found.content[0]!.text).toContain(path);
    const changes = await daemon.json<{ items: { path: string; channel: string }[] }>("GET", "/api/wiki/changes");
    expect(changes.items.find((each) => each.path.endsWith(path))?.channel).toBe("mcp");

    const { resources } = await client.listResources();
    const uri = resources.find(({ name }) => name === path)?.uri ?? "";
    expect(uri).toBe(`io://wiki/${path}`);
    const { contents } = await client.readResource({ uri });
    expect(contents[0]).toMatchObject({ uri, text: expect.stringContaining("quokka") });
    for (const wrong of [
      "io://runs/r_nothing",
      "io://wiki/../../approvals",
      "io://wiki/%2e%2e/%2e%2e/tokens",
      "io://wiki/%zz",
      "io://wiki/no-such-page",
      "io://tasks/%2e%2e",
    ])
      await expect(client.readResource({ uri: wrong }), wrong).rejects.toMatchObject({ code: -32602 });
    const { prompts } = await client.listPrompts();
    expect(prompts.map(({ name }) => name).sort()).toEqual(["delegate", "recall", "swarm"]);
    const recall = await client.getPrompt({ name: "recall", arguments: { topic: "quokkas" } });
    expect(JSON.stringify(recall.messages)).toContain("quokkas");

    for (const [name, args, code] of [
      ["io_message", { message: "m_nothing" }, "not_found"],
      ["io_wiki_read", { path: "../../approvals" }, "bad_request"],
      ["io_wiki_write", { path: "../../budgets", content: "{}" }, "bad_request"],
      ["io_message", { message: ".." }, "bad_request"],
      ["io_task", { task: "." }, "bad_request"],
      ["io_delegate", { squad: "..", task: "x" }, "bad_request"],
      ["io_delegate", { squad: "nobody", task: "x" }, "not_found"],
      ["io_cancel", {}, "bad_request"],
      ["io_ask", {}, "bad_request"],
      ["io_ask", { text: "x", conversation: "not a name!" }, "bad_request"],
      ["io_ask", { text: "x", folder: "somewhere" }, "bad_request"],
      ["io_ask", { text: "x", folder: "/nowhere/at/all" }, "bad_request"],
      ["io_message", { message: "m_nothing", wait_seconds: -1 }, "bad_request"],
      ["io_swarm_start", { project: "src", issue: "x" }, "bad_request"],
      ["io_swarm_start", { project: "/nowhere/at/all", issue: "x" }, "bad_request"],
    ] as const) {
      const failed = await call(name, args);
      expect(failed.isError, name).toBe(true);
      expect(failed.content[0]!.text).toMatch(new RegExp(`^${code}: \\S`));
    }
    // Outside projects, a new conversation is used instead of the user's own.
    const outside = await call("io_ask", { text: "nothing to do with a project", folder: temporaryFolder() });
    expect(outside.structuredContent?.conversation).toMatch(/^mcp-/);

    const word = who.replaceAll(/\W/g, "");
    const told: Told[] = [];
    const abort = new AbortController();
    const leaving = call("io_ask", { text: `hold ${word}` }, { signal: abort.signal, onprogress: (each) => told.push(each) });
    const left = expect(leaving).rejects.toThrow();
    await isHeld(word);
    await until("word of progress", () => told.length > 0);
    expect(told[0]).toMatchObject({ progress: 1, message: expect.stringMatching(/\w/) });
    const { items } = await daemon.json<{ items: { name: string }[] }>("GET", "/api/conversations?limit=1");
    abort.abort();
    await left;
    await until("the cancelled message", async () => {
      const list = await daemon.json<{ items: Message[] }>("GET", `/api/messages?conversation=${items[0]!.name}`);
      return list.items[0]?.status === "cancelled";
    });
    held.get(word)?.();
  });
});

test("what waits for a person is told with the command that decides, and nothing of MCP can decide it", async () => {
  const { client, call } = await modern(new StreamableHTTPClientTransport(address(), headers()));
  const file = join(temporaryFolder(), "made");
  const waiting = await call("io_ask", { text: callText("shell", { command: `touch ${file}` }) });
  const [question] = await asked(daemon);
  expect(waiting.structuredContent).toMatchObject({
    status: "waiting",
    approvals: [{ id: question!.id, command: `io approval allow ${question!.id}` }],
  });
  const { message } = waiting.structuredContent as { message: string };
  await call("io_ask", { text: `/allow ${question!.id}` });
  const { tools } = await client.listTools();
  expect(tools.filter(({ name }) => /approv|budget|config|token|skill|apply|mode/.test(name))).toEqual([]);
  expect((await approvalsOf(daemon, "waiting")).map(({ id }) => id)).toEqual([question!.id]);
  expect((await call("io_message", { message })).structuredContent).toMatchObject({ status: "waiting" });
  await decide(daemon, question!.id, { decision: "allow" });
  expect((await call("io_message", { message })).structuredContent).toMatchObject({ status: "done" });
  expect(existsSync(file)).toBe(true);
  const answer = await call("io_ask", { text: callText("config_update", { key: "logLevel", value: "debug" }) });
  expect(answer.structuredContent?.reply).toContain("only a person may");
  expect(readFileSync(join(daemon.home, "config.json"), "utf8")).not.toContain("debug");
});

test("a wait that is cancelled ends alone: what it waited for goes on", async () => {
  const speakers = [
    await modern(new StreamableHTTPClientTransport(address(), headers())),
    await old(new OldHttpTransport(address(), headers())),
  ];
  const body = { text: "hold awaited", conversation: "awaited" };
  const { id } = await daemon.json<Message>("POST", "/api/messages", body);
  await isHeld("awaited");
  for (const { call } of speakers) {
    const abort = new AbortController();
    const told: Told[] = [];
    const options = { signal: abort.signal, onprogress: (each: Told) => told.push(each) };
    const left = expect(call("io_message", { message: id }, options)).rejects.toThrow();
    await until("the wait", () => told.length > 0);
    abort.abort();
    await left;
    // By the time the daemon answers this, it has received the cancellation.
    await call("io_status");
  }
  await sleep(300);
  held.get("awaited")?.();
  expect(await finishedMessage(daemon, id)).toMatchObject({ status: "done" });
});

test("only a token for MCP opens it, and a refusal says what to do", async () => {
  const other = await daemon.json<MadeClientToken>("POST", "/api/tokens", { name: "not-mcp", for: ["openai"] });
  const post = (bearer: string | undefined, extra: Record<string, string> = {}) =>
    fetch(address(), {
      method: "POST",
      headers: {
        ...(bearer !== undefined && { authorization: `Bearer ${bearer}` }),
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        ...extra,
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }),
    });
  const astray = await post(other.token);
  expect([astray.status, await astray.json()]).toMatchObject([
    403,
    { error: { message: expect.stringContaining("io token create <name> --for mcp") } },
  ]);
  const nobody = await post(undefined);
  expect(nobody.headers.get("www-authenticate")).toBe("Bearer");
  expect([nobody.status, await nobody.json()]).toMatchObject([
    401,
    { error: { message: expect.stringContaining("io token create") } },
  ]);
  // Clients look here for a login as soon as they are refused, and IO's page would not be read as "there is none".
  const login = await fetch(`${daemon.url}/.well-known/oauth-protected-resource/mcp`);
  expect([login.status, await login.json()]).toMatchObject([404, { error: { code: "not_found" } }]);
  expect((await post(token, { origin: "https://elsewhere.example.com" })).status).toBe(403);
  expect((await post(token, { "mcp-session-id": "gone" })).status).toBe(404);
  const get = await fetch(address(), { headers: { authorization: `Bearer ${token}`, accept: "text/event-stream" } });
  expect(get.status).toBe(405);
  expect((await fetch(`${daemon.url}/api/status`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(403);
  expect((await fetch(`${daemon.url}/v1/models`, { headers: { authorization: `Bearer ${token}` } })).status).toBe(403);
});

test("io mcp starts the daemon, survives its death, and leaves its work going when the client closes it", async () => {
  let asks = 0;
  const model = await scriptedModel((request) => {
    if (!lastUserText(request).includes("long work")) return { say: "short" };
    asks += 1;
    return asks === 1 ? { hang: true } : { say: "the work is done" };
  });
  const home = temporaryHome({});
  onTestFinished(() => endDaemonOf(home));
  const env = cleanEnvironment(home, providerEnvironment(model.url)) as Record<string, string>;
  const { client, call } = await old(new OldStdioTransport({ command: process.execPath, args: [IO, "mcp"], env }));
  const asking = call("io_ask", { text: "long work", conversation: "lasting" });
  await until("the model to be asked", () => asks === 1);
  const file = JSON.parse(readFileSync(join(home, "daemon.json"), "utf8")) as { pid: number };
  process.kill(file.pid, "SIGKILL");
  // Nobody else starts it again.
  expect((await asking).structuredContent).toMatchObject({ status: "done", reply: "the work is done" });
  process.kill((JSON.parse(readFileSync(join(home, "daemon.json"), "utf8")) as { pid: number }).pid, "SIGKILL");
  const second = await startDaemonProcess(home, providerEnvironment(model.url));

  asks = 0;
  const left = call("io_ask", { text: "long work, once more", conversation: "left" }).catch(() => undefined);
  await until("the model to be asked again", () => asks === 1);
  await client.close();
  await left;
  const { items } = await second.json<{ items: Message[] }>("GET", "/api/messages?conversation=left");
  expect(items[0]?.status).toBe("running");
  await second.json("POST", `/api/messages/${items[0]!.id}/cancel`);
  expect((await finishedMessage(second, items[0]!.id)).status).toBe("cancelled");
});
