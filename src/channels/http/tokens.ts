import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { CLIENTS } from "../../home/clients.ts";
import { ClientToken, KnownClient, MadeClientToken, NewClientToken } from "../../protocol/tokens.ts";
import type { ClientTokens } from "../../store/client-tokens.ts";
import { HttpError } from "./errors.ts";
import { answers, body } from "./shapes.ts";

export interface TokenRoutesDeps {
  clientTokens: ClientTokens;
  env: NodeJS.ProcessEnv;
  /** When the last message came in, by channel. */
  lastHeard: () => Map<string, string>;
}

/** Other programs: how to connect them, and their tokens, none of which can use these routes. */
export function tokenRoutes(app: OpenAPIHono, deps: TokenRoutesDeps): void {
  const clients = createRoute({
    method: "get",
    path: "/api/clients",
    summary: "The programs that can use IO, and what to paste into each",
    responses: answers(200, z.object({ items: z.array(KnownClient) })),
  });
  app.openapi(clients, (context) => {
    const heard = deps.lastHeard();
    const access = { env: deps.env, url: new URL(context.req.url).origin, token: "<a token for openai>" };
    const items = Object.entries(CLIENTS).map(([client, { title, speaks, snippet }]) => ({
      ...{ client, title, speaks, ...snippet(access), lastHeardAt: heard.get(speaks) ?? null },
    }));
    return context.json({ items }, 200);
  });

  const list = createRoute({
    method: "get",
    path: "/api/tokens",
    summary: "The tokens that were made for other programs, without the tokens themselves",
    responses: answers(200, z.object({ items: z.array(ClientToken) })),
  });
  app.openapi(list, (context) => context.json({ items: deps.clientTokens.list() }, 200));

  const make = createRoute({
    method: "post",
    path: "/api/tokens",
    summary: "Makes a token for one program, which opens only what it is for; it is told this once",
    request: { body: body(NewClientToken) },
    responses: answers(201, MadeClientToken),
  });
  app.openapi(make, (context) => context.json(deps.clientTokens.make(context.req.valid("json")), 201));

  const revoke = createRoute({
    method: "delete",
    path: "/api/tokens/{name}",
    summary: "Revokes a token: from now on it opens nothing",
    request: { params: z.object({ name: z.string().max(100) }) },
    responses: answers(200, ClientToken),
  });
  app.openapi(revoke, (context) => {
    const revoked = deps.clientTokens.revoke(context.req.valid("param").name);
    if (!revoked) throw new HttpError(404, 'There is no token of this name. "io token list" names all of them.');
    return context.json(revoked, 200);
  });
}
