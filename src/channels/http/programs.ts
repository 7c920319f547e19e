import type { HttpBindings } from "@hono/node-server";
import type { OpenAPIHono } from "@hono/zod-openapi";
import { UserError } from "../../lib/errors.ts";
import type { ApiError } from "../../protocol/api.ts";
import type { IoAccess } from "../mcp/access.ts";
import { unpackedReader } from "./body.ts";
import { fail } from "./errors.ts";
import type { Guard } from "./guard.ts";

/** Handles the requests of a part that loads on first use. */
export type Served = (request: Request, env: Partial<HttpBindings>) => Response | Promise<Response>;

export interface ProgramRoutesDeps {
  token: string;
  /** The MCP server. */
  mcp: (access: IoAccess) => Promise<Served>;
  /** The API for OpenAI clients. `isClosing` tells it when the daemon is ending. */
  openai: (isClosing: () => boolean) => Promise<Served>;
}

const OPENAI_HELP =
  "Authorization: Bearer <token>, which OpenAI clients call the API key. Make one with: io token create <name> --for openai.";
const MCP_HELP =
  "Authorization: Bearer <token>. There is no OAuth here: make a token with `io token create <name> --for mcp` and put it into the client's settings as this header.";

/** The interfaces for other programs, each with tokens of its own. */
export function programRoutes(app: OpenAPIHono, deps: ProgramRoutesDeps, guard: Guard, isClosing: () => boolean): void {
  const { token, openai, mcp } = deps;
  app.use("/v1/*", guard.shareOpenAi);
  app.use("/v1/*", guard.authFor("openai", OPENAI_HELP));
  app.use("/v1/*", unpackedReader);
  app.all("/v1/*", async ({ req, env }) => (await openai(isClosing))(req.raw, env ?? {}));

  const access: IoAccess = { request: requestOn(app, token), isClosing };
  app.use("/mcp", guard.authFor("mcp", MCP_HELP));
  app.use("/mcp", unpackedReader);
  app.all("/mcp", async ({ req, env }) => (await mcp(access))(req.raw, env ?? {}));
  app.all("/mcp/*", (context) => fail(context, 404, "There is nothing at this address. MCP is served at /mcp."));
}

/** Calls the API's own routes without a connection. */
function requestOn(app: OpenAPIHono, token: string): IoAccess["request"] {
  return async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const response = await app.request(`http://localhost${path}`, {
      method,
      headers: {
        ...{ authorization: `Bearer ${token}`, host: "localhost", "io-client": "mcp" },
        ...(text !== undefined && { "content-type": "application/json", "content-length": String(Buffer.byteLength(text)) }),
      },
      ...(text !== undefined && { body: text }),
    });
    const answer: unknown = await response.json();
    if (response.ok) return answer as T;
    const { code, message } = (answer as ApiError).error;
    throw new UserError(message, { code });
  };
}
