import { readdirSync } from "node:fs";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "@photostructure/sqlite";
import { onTestFinished } from "vitest";
import type { ModelServer } from "../../src/engine/rehearsal/server.ts";
import { type ChatRequest, type Model, textOf } from "../../src/engine/rehearsal/wire.ts";
import type { Message } from "../../src/protocol/messages.ts";
import type { TestDaemon } from "./daemon.ts";
import type { AtTheEnd } from "./home.ts";

/** A model that makes all calls written in the user's message at once, then repeats their last result. */
export const obedient: Model = (request) => {
  const asked = request.messages.findLastIndex((message) => message.role === "user" && textOf(message).includes("[via "));
  const since = request.messages.slice(asked + 1);
  const result = since.findLast((message) => message.role === "tool");
  if (result) return { say: `I read: ${textOf(result)}` };
  const call = /call (\S+) (\{.*\}|\[.*\])$/s.exec(textOf(request.messages[asked]));
  if (!call) return { say: "nothing to do" };
  const given: unknown = JSON.parse(call[2]!);
  return { call: (Array.isArray(given) ? given : [given]).map((args: unknown) => ({ tool: call[1]!, args })) };
};

/** A model that makes the calls written in the user's message one after another, then repeats all results. */
export const stepwise: Model = (request) => {
  const at = request.messages.findLastIndex((message) => message.role === "user" && textOf(message).includes("[via "));
  const results = request.messages.slice(at + 1).filter(({ role }) => role === "tool");
  const calls = JSON.parse(/calls (\[.*\])$/s.exec(textOf(request.messages[at]))![1]!) as [string, unknown][];
  const next = calls[results.length];
  return next
    ? { call: [{ tool: next[0], args: next[1] }], say: `Step ${results.length + 1}.` }
    : { say: results.map(textOf).join("\n---\n") };
};

export const callText = (tool: string, args: unknown) => `call ${tool} ${JSON.stringify(args)}`;

let conversations = 0;

/** Lets an obedient model make a call in a new conversation. Returns the result that the model was shown. */
export async function modelCalls(
  daemon: TestDaemon,
  model: ModelServer,
  tool: string,
  args: unknown,
): Promise<{ read: string; message: Message; request: ChatRequest }> {
  conversations += 1;
  const message = await daemon.ask({ text: callText(tool, args), conversation: `case-${conversations}` });
  const request = model.requests.at(-1)!;
  return { read: textOf(request.messages.findLast(({ role }) => role === "tool")), message, request };
}

/** Makes many calls in one turn. Returns the results that the model was shown, in the order of the calls. */
export async function modelCallsAll(daemon: TestDaemon, model: ModelServer, tool: string, all: unknown[]): Promise<string[]> {
  const { request } = await modelCalls(daemon, model, tool, all);
  const asked = request.messages.findLast(({ tool_calls }) => tool_calls !== undefined)?.tool_calls ?? [];
  return asked.map(({ id }) => textOf(request.messages.find(({ tool_call_id }) => tool_call_id === id)));
}

/** The system message of a request. */
export const systemOf = (request: ChatRequest) => textOf(request.messages.find(({ role }) => role === "system"));

/** Starts a plain server on loopback that counts connections. */
export async function loopback(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
  atTheEnd: AtTheEnd = onTestFinished,
): Promise<{ port: number; url: string; connections: () => number }> {
  let connections = 0;
  const server = createServer(answer);
  server.on("connection", () => {
    connections += 1;
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  atTheEnd(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return { port, url: `http://127.0.0.1:${port}`, connections: () => connections };
}

/** Reads a home's database, or changes it while its daemon is down. */
export function inDatabase<T>(home: string, work: (db: InstanceType<typeof DatabaseSync>) => T): T {
  const db = new DatabaseSync(join(home, "io.db"));
  try {
    return work(db);
  } finally {
    db.close();
  }
}

/** The tool calls of a message and their states, according to the journal. */
export function journalOf(home: string, owner: string): unknown[] {
  return inDatabase(home, (db) =>
    db
      .prepare("SELECT tool, state FROM tool_calls WHERE owner = ? ORDER BY seq")
      .all(owner)
      .map((row) => ({ ...(row as object) })),
  );
}

/** Sends a request whose path is not normalized, as no well-behaved client would. */
export function rawRequest(
  daemon: TestDaemon,
  method: string,
  path: string,
  body?: unknown,
): Promise<{ status: number; text: string }> {
  const { hostname, port } = new URL(daemon.url);
  return new Promise((done, failed) => {
    const headers = { authorization: `Bearer ${daemon.token}`, "content-type": "application/json" };
    const outgoing = request({ hostname, port, method, path, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk) => {
        text += chunk;
      });
      response.on("end", () => done({ status: response.statusCode ?? 0, text }));
    });
    outgoing.on("error", failed);
    outgoing.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

/** Every file below a folder. Symbolic links are not followed. */
export function filesBelow(folder: string): string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    return entry.isDirectory() ? filesBelow(path) : [path];
  });
}
