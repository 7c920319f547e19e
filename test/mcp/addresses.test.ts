import { type ChildProcess, spawn } from "node:child_process";
import { text as textOf } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ModelServer } from "../../src/engine/rehearsal/server.ts";
import type { MadeClientToken } from "../../src/protocol/tokens.ts";
import { providerEnvironment, runIo, startDaemonProcess, type TestDaemon } from "../support/daemon.ts";
import { unmarked } from "../support/data.ts";
import { freePort } from "../support/free-port.ts";
import { collectEndings, temporaryHome } from "../support/home.ts";
import { isIn, published, serverOf } from "../support/mcp/servers.ts";
import { scriptedModel } from "../support/model.ts";
import { journalOf, loopback, modelCalls, obedient } from "../support/orchestrator.ts";
import { killed } from "../support/processes.ts";
import { until } from "../support/until.ts";

const { atTheEnd, end } = collectEndings();
afterAll(end);

let daemon: TestDaemon;
let model: ModelServer;

beforeAll(async () => {
  model = await scriptedModel(obedient, undefined, atTheEnd);
  daemon = await startDaemonProcess(temporaryHome({ mode: "full" }, atTheEnd), providerEnvironment(model.url), atTheEnd);
});

const calls = async (tool: string, args: unknown) => (await modelCalls(daemon, model, tool, args)).read;
const add = (name: string, server: object) => daemon.json("POST", "/api/mcp", { name, ...server });

/** Starts the published server "everything" at an address. */
async function everythingAt(port: number, how: "streamableHttp" | "sse"): Promise<ChildProcess> {
  const { command, args } = published("everything");
  const child = spawn(command, [...args, how], { env: { PATH: process.env.PATH, PORT: String(port) }, stdio: "ignore" });
  atTheEnd(() => killed(child));
  await until(
    "the server",
    async () =>
      (await fetch(`http://127.0.0.1:${port}/`).then(
        () => true,
        () => false,
      )) || undefined,
    60_000,
  );
  return child;
}

test.each([
  ["streamableHttp", "mcp", "http"],
  ["sse", "sse", "sse"],
] as const)(
  "a published server over %s is used, and one that went away is a sentence until it is back",
  async (how, path, type) => {
    const port = await freePort();
    const child = await everythingAt(port, how);
    await add(how, { type, url: `http://127.0.0.1:${port}/${path}` });
    expect(await isIn(daemon, how, "ready")).toMatchObject({
      transport: type,
      tools: expect.arrayContaining([`mcp__${how}__echo`]),
    });
    expect(unmarked(await calls(`mcp__${how}__echo`, { message: "over the wire" }))).toBe("Echo: over the wire");
    await killed(child);
    expect(await calls(`mcp__${how}__echo`, { message: "anybody?" })).toMatch(
      /^The MCP server \w+ (?:gave no answer|ended|is not there|could not be)/,
    );
    await everythingAt(port, how);
    await until(
      "the server to be used again",
      async () => (await calls(`mcp__${how}__echo`, { message: "back" })).includes("Echo: back"),
      60_000,
    );
  },
);

test("a server of the protocol's newest version is spoken to in it, with the headers that its entry says", async () => {
  const { token } = await daemon.json<MadeClientToken>("POST", "/api/tokens", { name: "itself", for: ["mcp"] });
  const added = await runIo(
    ["mcp", "add", "io", "--url", `${daemon.url}/mcp`, "--header", `Authorization: Bearer ${token}`],
    daemon.home,
  );
  expect(added.stdout).toContain("io  http  ready");
  expect((await serverOf(daemon, "io")).protocol).toBe("2026-07-28");
  expect(await calls("mcp__io__io_squads", {})).toContain('"items":[]');
  expect(await (await daemon.fetch("/api/config")).text()).not.toContain(token);
});

test.each(["an answer", "an event of a stream"])(
  "a server at an address that sends %s of a hundred thousand parts silences nobody, and the model reads why",
  async (how) => {
    const name = how.replace(/\W/g, "");
    const parts = `[${Array(100_000).fill('{"type":"text"}').join(",")}]`;
    const { url } = await loopback(async (request, response) => {
      const { id, method } = JSON.parse((await textOf(request)) || "{}") as { id?: number; method?: string };
      if (id === undefined) return void response.writeHead(202).end();
      const tools = [{ name: "much", inputSchema: { type: "object" } }];
      const results: Record<string, unknown> = {
        initialize: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name, version: "1" } },
        "tools/list": { tools },
      };
      const told = results[method ?? ""];
      const error = { code: -32601, message: "unknown" };
      const text =
        method === "tools/call"
          ? `{"jsonrpc":"2.0","id":${id},"result":{"content":${parts}}}`
          : JSON.stringify({ jsonrpc: "2.0", id, ...(told ? { result: told } : { error }) });
      const isStream = how !== "an answer";
      response.writeHead(200, { "content-type": isStream ? "text/event-stream" : "application/json" });
      response.end(isStream ? `event: message\ndata: ${text}\n\n` : text);
    }, atTheEnd);
    await add(name, { type: "http", url });
    await isIn(daemon, name, "ready");
    expect(await calls(`mcp__${name}__much`, {})).toContain("has more than 40,000 entries");
  },
);

test("a server that has ended the session turns one call away, undone, and is spoken to anew by the next", async () => {
  const sessions = new Set<string>();
  const seen = { sessions: 0, calls: 0, turnedAway: 0 };
  const { url } = await loopback(async (request, response) => {
    if (request.method !== "POST") return void response.writeHead(405).end();
    const { id, method } = JSON.parse((await textOf(request)) || "{}") as { id?: number; method?: string };
    const session = String(request.headers["mcp-session-id"]);
    if (method === "tools/call" && !sessions.has(session)) {
      seen.turnedAway += 1;
      return void response.writeHead(404).end("no such session");
    }
    if (id === undefined) return void response.writeHead(202).end();
    if (method === "initialize") sessions.add(`s${++seen.sessions}`);
    if (method === "tools/call") seen.calls += 1;
    const results: Record<string, unknown> = {
      initialize: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "short", version: "1" } },
      "tools/list": { tools: [{ name: "count", inputSchema: { type: "object" } }] },
      "tools/call": { content: [{ type: "text", text: `call ${seen.calls}` }] },
    };
    const result = results[method ?? ""];
    response.writeHead(200, { "content-type": "application/json", "mcp-session-id": `s${seen.sessions}` });
    response.end(
      JSON.stringify({ jsonrpc: "2.0", id, ...(result ? { result } : { error: { code: -32601, message: "unknown" } }) }),
    );
  }, atTheEnd);
  await add("short", { type: "http", url });
  await isIn(daemon, "short", "ready");
  expect(unmarked(await calls("mcp__short__count", {}))).toBe("call 1");
  sessions.clear();
  const { read, message } = await modelCalls(daemon, model, "mcp__short__count", {});
  expect(read).toContain("did not take the call, and nothing was done");
  expect(journalOf(daemon.home, message.id)).toEqual([{ tool: "mcp__short__count", state: "failed" }]);
  expect(unmarked(await calls("mcp__short__count", {}))).toBe("call 2");
  expect(seen).toEqual({ sessions: 2, calls: 2, turnedAway: 1 });
});

test("an address that wants a login, one that answers without end, and one that nobody serves say so", async () => {
  const { url } = await loopback((request, response) => {
    if (request.url === "/closed") response.writeHead(401).end();
    else {
      response.writeHead(200, { "content-type": "application/json" });
      const more = () => response.writable && response.write(" ".repeat(1_000_000), more);
      more();
    }
  }, atTheEnd);
  await add("closed", { type: "http", url: `${url}/closed` });
  await add("endless", { type: "http", url: `${url}/endless` });
  await add("nobody", { type: "http", url: `http://127.0.0.1:${await freePort()}/mcp` });
  expect((await isIn(daemon, "closed", "needs-login")).detail).toContain("login");
  expect((await isIn(daemon, "endless", "failed")).detail).toContain("more than 4 MB");
  expect((await isIn(daemon, "nobody", "failed")).detail).not.toBe("");
});
