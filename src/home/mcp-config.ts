import { z } from "zod";

/** How long a tool call may take, unless its server has another limit. */
export const DEFAULT_TIMEOUT_MS = 120_000;

const Texts = z.record(z.string().min(1).max(200), z.string().max(20_000));

/** How to log in to a server that requires it. */
export const McpOAuth = z.strictObject({
  clientId: z.string().min(1).max(500).optional().describe("the client's id, where the server registers none by itself"),
  scopes: z.array(z.string().min(1).max(200)).max(50).optional().describe("what to ask for; what the server names if not set"),
});

/** One of the user's MCP servers: a program that IO starts, or an address. */
export const McpServerConfig = z
  .strictObject({
    type: z.enum(["stdio", "http", "sse"]).optional().describe("`stdio` for a command; `http` or `sse` for a `url`"),
    command: z.string().min(1).max(4_000).optional().describe("the program to start"),
    args: z.array(z.string().max(20_000)).max(200).default([]).describe("its arguments"),
    env: Texts.default({}).describe("variables for it, besides `PATH`, `HOME` and `LANG`"),
    cwd: z.string().min(1).max(4_000).optional().describe("the folder it is started in"),
    url: z.string().min(1).max(4_000).optional().describe("the address of a server that runs already"),
    headers: Texts.default({}).describe("headers for every request to `url`"),
    oauth: McpOAuth.optional().describe("for a server that wants a login; `io mcp login` asks for it"),
    tools: z
      .array(z.string().min(1).max(200))
      .max(200)
      .optional()
      .describe("the tools to offer, by the server's names; all if not set"),
    read: z
      .array(z.string().min(1).max(200))
      .max(200)
      .default([])
      .describe("tools that only read, by your own judgement: they need no approval and work in the mode `plan`"),
    timeout: z
      .number()
      .int()
      .min(1_000)
      .max(3_600_000)
      .optional()
      .describe(`milliseconds a call may be silent; ${DEFAULT_TIMEOUT_MS} if not set`),
    disabled: z.boolean().optional().describe("`true` switches it off"),
  })
  .superRefine(({ type, command, url }, context) => {
    const trouble = whatIsMissing(type, command, url);
    if (trouble !== undefined) context.addIssue({ code: "custom", message: trouble });
  });
export type McpServerConfig = z.infer<typeof McpServerConfig>;

/** The servers by name. */
export const McpServers = z
  .record(z.string().regex(/^[^\p{C}]{1,64}$/u, "must be a name of 1 to 64 letters"), McpServerConfig)
  .refine((servers) => Object.keys(servers).length <= 50, "must hold at most 50 servers");

function whatIsMissing(type: string | undefined, command: string | undefined, url: string | undefined): string | undefined {
  if (command !== undefined && url !== undefined) return 'must have "command" or "url", not both';
  if (command === undefined && url === undefined) return 'must have "command" (a program to start) or "url" (an address)';
  if (command !== undefined && type !== undefined && type !== "stdio") return `has a "command", so "type" cannot be "${type}"`;
  if (url !== undefined && type === "stdio") return 'has a "url", so "type" must be "http" or "sse"';
  return undefined;
}
