import { createHash, randomBytes } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AtTheEnd } from "../home.ts";
import { loopback } from "../orchestrator.ts";

/** Starts an MCP server that requires a login, with its authorization server: registration, PKCE, `iss` and refresh tokens. */
export async function startGuarded(atTheEnd: AtTheEnd) {
  const codes = new Map<string, { challenge: string; redirect: string }>();
  const valid = new Set<string>();
  const refreshable = new Set<string>();
  /** Where people are sent to log in, if not to this server. */
  let loginAt: string | undefined;
  const seen = { registrations: 0, refreshes: 0, given: [] as string[] };
  const textOf = async (request: IncomingMessage) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(Buffer.from(chunk));
    return Buffer.concat(chunks).toString("utf8");
  };
  const json = (response: ServerResponse, status: number, value: unknown, headers = {}) =>
    void response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));
  const issue = () => {
    const access_token = `access-${randomBytes(12).toString("hex")}`;
    const refresh_token = `refresh-${randomBytes(12).toString("hex")}`;
    valid.add(access_token);
    refreshable.add(refresh_token);
    seen.given.push(access_token, refresh_token);
    return { access_token, refresh_token, token_type: "Bearer", expires_in: 3600 };
  };
  const speak = (body: { id?: number; method: string }) => {
    if (body.method === "initialize")
      return { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "guarded", version: "1" } };
    if (body.method === "tools/list") return { tools: [{ name: "whoami", inputSchema: { type: "object" } }] };
    return body.method === "tools/call" ? { content: [{ type: "text", text: "somebody who logged in" }] } : undefined;
  };
  const { url } = await loopback((request, response) => {
    void (async () => {
      const at = new URL(request.url ?? "/", url);
      const body = await textOf(request);
      const bearer = request.headers.authorization?.replace("Bearer ", "") ?? "";
      if (at.pathname === "/mcp" && !valid.has(bearer))
        return json(response, 401, {}, { "www-authenticate": `Bearer resource_metadata="${url}/about-me"` });
      if (at.pathname === "/mcp" && request.method !== "POST") return response.writeHead(405).end();
      if (at.pathname === "/mcp") {
        const message = JSON.parse(body) as { id?: number; method: string };
        if (message.id === undefined) return response.writeHead(202).end();
        const result = speak(message);
        const error = { code: -32601, message: "Method not found" };
        return json(response, 200, { jsonrpc: "2.0", id: message.id, ...(result ? { result } : { error }) });
      }
      if (at.pathname === "/about-me") return json(response, 200, { resource: `${url}/mcp`, authorization_servers: [url] });
      if (at.pathname === "/.well-known/oauth-authorization-server")
        return json(response, 200, {
          ...{ issuer: url, authorization_endpoint: loginAt ?? `${url}/authorize`, token_endpoint: `${url}/token` },
          ...{ registration_endpoint: `${url}/register`, response_types_supported: ["code"] },
          ...{ grant_types_supported: ["authorization_code", "refresh_token"], code_challenge_methods_supported: ["S256"] },
          ...{ token_endpoint_auth_methods_supported: ["none"], authorization_response_iss_parameter_supported: true },
        });
      if (at.pathname === "/register") {
        seen.registrations += 1;
        return json(response, 201, { ...(JSON.parse(body) as object), client_id: `client-${seen.registrations}` });
      }
      if (at.pathname === "/authorize") {
        const code = randomBytes(12).toString("hex");
        const redirect = at.searchParams.get("redirect_uri") ?? "";
        codes.set(code, { challenge: at.searchParams.get("code_challenge") ?? "", redirect });
        const back = new URL(redirect);
        back.search = String(new URLSearchParams({ code, state: at.searchParams.get("state") ?? "", iss: url }));
        return response.writeHead(302, { location: back.href }).end();
      }
      const form = new URLSearchParams(body);
      if (form.get("grant_type") === "refresh_token") {
        if (!refreshable.delete(form.get("refresh_token") ?? "")) return json(response, 400, { error: "invalid_grant" });
        seen.refreshes += 1;
        return json(response, 200, issue());
      }
      const code = codes.get(form.get("code") ?? "");
      codes.delete(form.get("code") ?? "");
      const challenge = createHash("sha256")
        .update(form.get("code_verifier") ?? "")
        .digest("base64url");
      if (code?.challenge !== challenge || form.get("redirect_uri") !== code.redirect)
        return json(response, 400, { error: "invalid_grant" });
      return json(response, 200, issue());
    })();
  }, atTheEnd);
  const sendTo = (address: string | undefined) => {
    loginAt = address;
  };
  return { url, seen, sendTo, expire: () => valid.clear(), revoke: () => refreshable.clear() };
}
