import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";
import type { AtTheEnd } from "./home.ts";

/** A request that reached GitHub, or would have. */
export interface Asked {
  /** Such as "GET /models", or "CONNECT example.com:443" for a host that nobody should contact. */
  what: string;
  token: string | undefined;
  body: string;
}

/** How the fake GitHub answers a path, if not as GitHub would. */
export type Answer = { status: number; body: string | object; headers?: Record<string, string> } | "never" | "hang up";
type Paths = "/copilot_internal/user" | "/models" | "/chat/completions";

/** A fake GitHub on loopback: api.github.com, the Copilot API, and a proxy that catches requests to any other host. */
export interface GitHub {
  url: string;
  asked: Asked[];
  /** All requests, in order. */
  list(): string[];
  answer: Partial<Record<Paths, Answer>>;
  /** The environment that makes a runtime talk to this server and no other. */
  env: NodeJS.ProcessEnv;
}

export async function standInForGitHub({
  models = ["claude-sonnet-4.6", "gpt-5-mini"],
  say = "Hello from Copilot.",
  atTheEnd = onTestFinished as AtTheEnd,
} = {}): Promise<GitHub> {
  const asked: Asked[] = [];
  const answer: GitHub["answer"] = {};
  const server = createServer(async (request, response) => {
    const body = await read(request);
    const path = new URL(request.url ?? "/", "http://here").pathname;
    const elsewhere = /^https?:/.test(request.url ?? "");
    asked.push({
      what: `${request.method} ${elsewhere ? request.url : path}`,
      token: request.headers.authorization?.replace(/^Bearer /, ""),
      body,
    });
    const other = answer[path as Paths];
    if (other === "never") return;
    if (other === "hang up") return void request.socket.destroy();
    if (other) return send(response, other.status, other.body, other.headers);
    if (path === "/copilot_internal/user") return send(response, 200, user(url));
    if (path === "/models") return send(response, 200, { object: "list", data: models.map(model) });
    if (path === "/chat/completions") return stream(response, say);
    send(response, 404, { message: "Not Found" });
  });
  server.on("connect", (request, socket) => {
    asked.push({ what: `CONNECT ${request.url}`, token: undefined, body: "" });
    socket.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
  });
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  atTheEnd(
    () =>
      new Promise<void>((closed) => {
        server.close(() => closed());
        server.closeAllConnections();
      }),
  );
  return {
    url,
    asked,
    list: () => asked.map(({ what }) => what),
    answer,
    env: { COPILOT_DEBUG_GITHUB_API_URL: url, HTTPS_PROXY: url, HTTP_PROXY: url, NO_PROXY: "127.0.0.1,localhost" },
  };
}

async function read(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("utf8");
}

function send(response: ServerResponse, status: number, body: string | object, headers: Record<string, string> = {}): void {
  const text = typeof body === "string";
  response.writeHead(status, { "content-type": text ? "text/plain" : "application/json", ...headers });
  response.end(text ? body : JSON.stringify(body));
}

function stream(response: ServerResponse, text: string): void {
  const chunk = (delta: object, finish: string | null) =>
    `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.write(chunk({ role: "assistant", content: text }, null));
  response.end(`${chunk({}, "stop")}data: [DONE]\n\n`);
}

const user = (api: string) => ({
  login: "mona",
  access_type_sku: "plus_yearly_subscriber_quota",
  copilot_plan: "individual_pro",
  chat_enabled: true,
  can_signup_for_limited: false,
  organization_list: [],
  organization_login_list: [],
  endpoints: { api, telemetry: "https://telemetry.individual.githubcopilot.com" },
  quota_snapshots: {},
});

const model = (id: string) => ({
  id,
  name: id,
  object: "model",
  vendor: "GitHub",
  version: id,
  preview: false,
  model_picker_enabled: true,
  supported_endpoints: ["/chat/completions"],
  policy: { state: "enabled", terms: "" },
  billing: { is_premium: false, multiplier: 1 },
  capabilities: {
    family: id,
    object: "model_capabilities",
    type: "chat",
    tokenizer: "o200k_base",
    limits: { max_context_window_tokens: 200_000, max_output_tokens: 64_000, max_prompt_tokens: 136_000 },
    supports: { streaming: true, tool_calls: true, parallel_tool_calls: true },
  },
});
