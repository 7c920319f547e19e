import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { type McpServerConfig, McpServers } from "../../home/mcp-config.ts";
import type { Mcp } from "../../mcp/mcp.ts";
import { McpServer, McpServerDetails } from "../../protocol/mcp.ts";
import { Conversation } from "../../protocol/messages.ts";
import { answers, body } from "./shapes.ts";

export interface McpServerRoutesDeps {
  mcpServers: Pick<
    Mcp,
    "list" | "show" | "enable" | "disable" | "test" | "login" | "logout" | "loggedIn" | "lend" | "allowLent" | "takeBack"
  > & {
    add(name: string, server: Partial<McpServerConfig>): void;
    remove(name: string): void;
  };
  /** The folders that conversations and squads use. */
  knownProjects: () => string[];
}

const Name = z.object({ name: z.string().min(1).max(64) });
const Folder = z.string().startsWith("/", "must be an absolute path").max(4_000);
const OfProject = z.object({ project: Folder.optional() });
const Listed = OfProject.extend({
  everywhere: z.enum(["true", "false"]).optional().describe("also those of every project that a conversation or squad works in"),
});
/** Stored as given: omitted keys stay out of the file. */
const NewServer = z.looseObject({ name: z.string().min(1).max(64) });

/** The user's MCP servers. Tokens of other programs cannot use these routes. */
export function mcpServerRoutes(app: OpenAPIHono, { mcpServers, knownProjects }: McpServerRoutesDeps): void {
  const list = createRoute({
    method: "get",
    path: "/api/mcp",
    summary: "The MCP servers of config.json, and those that the files of a project name",
    request: { query: Listed },
    responses: answers(200, z.object({ items: z.array(McpServer) })),
  });
  app.openapi(list, (context) => {
    const { project, everywhere } = context.req.valid("query");
    const projects = [...(project === undefined ? [] : [project]), ...(everywhere === "true" ? knownProjects() : [])];
    return context.json({ items: mcpServers.list(projects) }, 200);
  });

  const add = createRoute({
    method: "post",
    path: "/api/mcp",
    summary: "Writes a new server into config.json, with the fields that it has there besides its name",
    request: { body: body(NewServer) },
    responses: answers(201, McpServerDetails),
  });
  app.openapi(add, (context) => {
    const { name, ...server } = context.req.valid("json");
    mcpServers.add(name, server as Partial<McpServerConfig>);
    return context.json(mcpServers.show(name), 201);
  });

  const show = createRoute({
    method: "get",
    path: "/api/mcp/{name}",
    summary: "A server with what it would run or reach, and the hash by which it can be switched on",
    request: { params: Name, query: OfProject },
    responses: answers(200, McpServerDetails),
  });
  app.openapi(show, (context) =>
    context.json(mcpServers.show(context.req.valid("param").name, context.req.valid("query").project), 200),
  );

  const remove = createRoute({
    method: "delete",
    path: "/api/mcp/{name}",
    summary: "Takes a server out of config.json",
    request: { params: Name },
    responses: answers(200, McpServer),
  });
  app.openapi(remove, (context) => {
    const { name } = context.req.valid("param");
    const { state: _state, ...known } = mcpServers.show(name);
    mcpServers.remove(name);
    return context.json({ ...known, state: "off" as const, tools: [], protocol: null }, 200);
  });

  const enable = createRoute({
    method: "post",
    path: "/api/mcp/{name}/enable",
    summary: "Switches a server on and accepts its tools, if it still is what the hash says that a person was shown",
    request: { params: Name, body: body(OfProject.extend({ hash: z.string().max(100).optional() })) },
    responses: answers(200, McpServerDetails),
  });
  app.openapi(enable, async (context) =>
    context.json(await mcpServers.enable(context.req.valid("param").name, context.req.valid("json")), 200),
  );

  const disable = createRoute({
    method: "post",
    path: "/api/mcp/{name}/disable",
    summary: "Switches a server off",
    request: { params: Name, body: body(OfProject) },
    responses: answers(200, McpServer),
  });
  app.openapi(disable, (context) =>
    context.json(mcpServers.disable(context.req.valid("param").name, context.req.valid("json").project), 200),
  );

  const test = createRoute({
    method: "post",
    path: "/api/mcp/{name}/test",
    summary: "Starts a server that is switched on, if it is not there, and tells how that went",
    request: { params: Name, body: body(OfProject) },
    responses: answers(200, McpServerDetails),
  });
  app.openapi(test, async (context) =>
    context.json(await mcpServers.test(context.req.valid("param").name, context.req.valid("json").project), 200),
  );

  const login = createRoute({
    method: "post",
    path: "/api/mcp/{name}/login",
    summary: "Begins a login and tells the address where a person goes on; its end is waited for ten minutes",
    request: { params: Name, body: body(OfProject) },
    responses: answers(200, z.object({ url: z.string() })),
  });
  app.openapi(login, async (context) =>
    context.json(await mcpServers.login(context.req.valid("param").name, context.req.valid("json").project), 200),
  );

  const logout = createRoute({
    method: "post",
    path: "/api/mcp/{name}/logout",
    summary: "Forgets the login of a server",
    request: { params: Name, body: body(OfProject) },
    responses: answers(200, McpServerDetails),
  });
  app.openapi(logout, async (context) =>
    context.json(await mcpServers.logout(context.req.valid("param").name, context.req.valid("json").project), 200),
  );

  lendRoutes(app, mcpServers);

  // The server's login page sends the browser here without a token; the `state` in the address is valid once.
  app.get("/oauth/callback", async (context) => {
    await mcpServers.loggedIn(new URL(context.req.url).searchParams);
    return context.html("<!doctype html><meta charset=utf-8><title>IO</title><p>You are logged in. This page can be closed.</p>");
  });
}

/** Servers that an editor lends to one conversation. */
function lendRoutes(app: OpenAPIHono, mcpServers: McpServerRoutesDeps["mcpServers"]): void {
  const path = "/api/conversations/{name}/servers";
  const params = z.object({ name: Conversation });
  const Lent = z.strictObject({ folder: Folder, servers: McpServers });

  const lend = createRoute({
    method: "put",
    path,
    summary:
      "Lends MCP servers to a conversation, in memory alone, in place of those lent before; waits for the start of those that a person has seen",
    request: { params, body: body(Lent) },
    responses: answers(200, z.object({ items: z.array(McpServerDetails) })),
  });
  app.openapi(lend, async (context) => {
    const { folder, servers } = context.req.valid("json");
    return context.json({ items: await mcpServers.lend(context.req.valid("param").name, folder, servers) }, 200);
  });

  const allow = createRoute({
    method: "post",
    path: "/api/conversations/{name}/servers/{server}/allow",
    summary: "Starts a lent server for this conversation, if it still is what the hash says that a person was shown",
    request: {
      params: params.extend({ server: z.string().min(1).max(64) }),
      body: body(z.strictObject({ hash: z.string().max(100) })),
    },
    responses: answers(200, McpServerDetails),
  });
  app.openapi(allow, async (context) => {
    const { name, server } = context.req.valid("param");
    return context.json(await mcpServers.allowLent(name, server, context.req.valid("json").hash), 200);
  });

  const takeBack = createRoute({
    method: "delete",
    path,
    summary: "Takes back the MCP servers that were lent to a conversation",
    request: { params },
    responses: answers(200, z.object({ items: z.array(McpServer) })),
  });
  app.openapi(takeBack, (context) => {
    mcpServers.takeBack(context.req.valid("param").name);
    return context.json({ items: [] }, 200);
  });
}
