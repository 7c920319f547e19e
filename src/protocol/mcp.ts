import { z } from "zod";

/** How far an MCP server of the user's is. */
export const McpState = z.enum(["off", "untrusted", "starting", "ready", "failed", "needs-login"]);
export type McpState = z.infer<typeof McpState>;

/** An MCP server of the user's, as it is listed. */
export const McpServer = z
  .object({
    name: z.string(),
    /** Where it comes from: config.json, a project's `.mcp.json` or `.vscode/mcp.json`, or an editor that lends it to its session. */
    from: z.enum(["config", "project", "vscode", "acp"]),
    /** The folder whose file names it, or of the editor's session; null for one of config.json. */
    project: z.string().nullable(),
    transport: z.enum(["stdio", "http", "sse"]),
    state: McpState,
    /** Why it is in this state, or what a person should know of it; null where there is nothing to say. */
    detail: z.string().nullable(),
    /** The tools that are offered to models, by the names they have there. */
    tools: z.array(z.string()),
    /** The version of the protocol that is spoken; null while there is no connection. */
    protocol: z.string().nullable(),
  })
  .meta({ id: "McpServer" });
export type McpServer = z.infer<typeof McpServer>;

/** The same with what a person looks at before switching it on. No value of a variable or header is in it. */
export const McpServerDetails = McpServer.extend({
  command: z.string().nullable(),
  args: z.array(z.string()),
  cwd: z.string().nullable(),
  url: z.string().nullable(),
  /** The names of the variables and headers that it is given, and of the variables that are filled in. */
  variables: z.array(z.string()),
  /** Of what would be run or reached; it is switched on only as it was shown. */
  hash: z.string(),
  /** Tools that are new or changed since a person accepted them. They are not offered. */
  withheld: z.array(z.string()),
}).meta({ id: "McpServerDetails" });
export type McpServerDetails = z.infer<typeof McpServerDetails>;
