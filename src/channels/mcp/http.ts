import { randomUUID } from "node:crypto";
import {
  createMcpHandler,
  isLegacyRequest,
  type McpServer,
  WebStandardStreamableHTTPServerTransport,
} from "@modelcontextprotocol/server";
import type { Log } from "../../lib/log.ts";
import type { IoAccess } from "./access.ts";
import { createMcpServer } from "./server.ts";

export interface McpHttpDeps {
  access: IoAccess;
  version: string;
  log: Pick<Log, "debug">;
}

const MAX_BODY = 1_000_000;
/** More clients than any user has; the longest silent session makes room. */
const MOST_SESSIONS = 64;

interface LegacySession {
  server: McpServer;
  transport: WebStandardStreamableHTTPServerTransport;
}

/**
 * MCP over HTTP for both protocol generations. Clients of the 2025 protocol get sessions, so that a cancellation reaches its
 * call; those of 2026 are stateless.
 */
export function createMcpHttp({ access, version, log }: McpHttpDeps): (request: Request) => Promise<Response> {
  const onerror = (error: Error) => log.debug("an MCP client was refused", { error: error.message });
  const makeServer = () => createMcpServer(access, version);
  const modern = createMcpHandler(makeServer, { legacy: "reject", maxRequestBodySize: MAX_BODY, onerror });
  const sessions = new Map<string, LegacySession>();

  async function begin(): Promise<WebStandardStreamableHTTPServerTransport> {
    const server = makeServer();
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      maxRequestBodySize: MAX_BODY,
      onsessioninitialized: (id) => {
        sessions.set(id, { server, transport });
        const [oldest] = sessions.keys();
        if (sessions.size > MOST_SESSIONS && oldest !== undefined) void end(oldest);
      },
      onsessionclosed: (id) => void sessions.delete(id),
    });
    await server.connect(transport);
    return transport;
  }
  async function end(id: string): Promise<void> {
    const session = sessions.get(id);
    sessions.delete(id);
    await session?.server.close();
  }

  return async (request) => {
    if (!(await isLegacyRequest(request, undefined, { maxRequestBodySize: MAX_BODY }))) return modern.fetch(request);
    const id = request.headers.get("mcp-session-id");
    const session = id === null ? undefined : sessions.get(id);
    if (id !== null && session) {
      sessions.delete(id);
      sessions.set(id, session);
      return session.transport.handleRequest(request);
    }
    // An idle stream makes some clients wait for ever.
    if (request.method !== "POST") return new Response("Method not allowed.", { status: 405, headers: { allow: "POST" } });
    // A client whose session is gone starts another.
    if (id !== null) return refusal(404, "This session is gone: begin another.");
    return (await begin()).handleRequest(request);
  };
}

function refusal(status: number, message: string): Response {
  return Response.json({ jsonrpc: "2.0", error: { code: -32001, message }, id: null }, { status });
}
