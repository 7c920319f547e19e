import { z } from "zod";

/** The state of a user's MCP server. */
export const McpState = z.enum(["off", "untrusted", "starting", "ready", "failed", "needs-login"]);
export type McpState = z.infer<typeof McpState>;

/** A user's MCP server in a list. */
export const McpServer = z
  .object({
    name: z.string(),
    /** Its source: config.json, a project's `.mcp.json` or `.vscode/mcp.json`, or an editor that lends it to its session. */
    from: z.enum(["config", "project", "vscode", "acp"]),
    /** The project folder of its file or editor session; null for a server of config.json. */
    project: z.string().nullable(),
    transport: z.enum(["stdio", "http", "sse"]),
    state: McpState,
    /** Why it is in this state, or what the user should know; null if there is nothing to say. */
    detail: z.string().nullable(),
    /** The tools that models get, by their names there. */
    tools: z.array(z.string()),
    /** The negotiated protocol version; null without a connection. */
    protocol: z.string().nullable(),
  })
  .meta({ id: "McpServer" });
export type McpServer = z.infer<typeof McpServer>;

/** The same with what a person checks before enabling it; contains no values of variables or headers. */
export const McpServerDetails = McpServer.extend({
  command: z.string().nullable(),
  args: z.array(z.string()),
  cwd: z.string().nullable(),
  url: z.string().nullable(),
  /** The names of its variables and headers, and of variables that are filled in. */
  variables: z.array(z.string()),
  /** Hash of the program or address; enabling requires the hash that was shown. */
  hash: z.string(),
  /** Tools that are new or changed since a person accepted them. Models do not get them. */
  withheld: z.array(z.string()),
}).meta({ id: "McpServerDetails" });
export type McpServerDetails = z.infer<typeof McpServerDetails>;
