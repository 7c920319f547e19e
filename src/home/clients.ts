import { join, resolve } from "node:path";
import { quotedForShell } from "../lib/invocation.ts";
import { packageRoot } from "../lib/package-root.ts";

/** How another program starts IO: absolute paths, since desktop programs have no PATH. */
interface Start {
  command: string;
  args: string[];
  env?: Record<string, string>;
}

/** How a client reaches IO: by starting it, or by an address and a token. */
export interface ClientAccess {
  env: NodeJS.ProcessEnv;
  /** The daemon's address, and the token for `/v1`. */
  url: string;
  token: string;
}

/** What to paste into a client, and where. */
export interface Snippet {
  where: string;
  text: string;
}

interface Client {
  title: string;
  speaks: "acp" | "mcp" | "openai";
  snippet: (access: ClientAccess) => Snippet;
}

/** The clients that IO has instructions for. */
export const CLIENTS = {
  zed: {
    ...{ title: "Zed", speaks: "acp" },
    snippet: (access) => inFile("settings.json of Zed", { agent_servers: { IO: { type: "custom", ...startOf(access, "acp") } } }),
  },
  jetbrains: {
    ...{ title: "JetBrains", speaks: "acp" },
    snippet: (access) => inFile("~/.jetbrains/acp.json", { agent_servers: { IO: startOf(access, "acp") } }),
  },
  neovim: {
    ...{ title: "Neovim", speaks: "acp" },
    snippet: (access) => ({ where: "the options of avante.nvim", text: luaOf(startOf(access, "acp")) }),
  },
  "claude-desktop": {
    ...{ title: "Claude Desktop", speaks: "mcp" },
    snippet: (access) => inFile("claude_desktop_config.json", { mcpServers: { io: startOf(access, "mcp") } }),
  },
  "claude-code": {
    ...{ title: "Claude Code", speaks: "mcp" },
    snippet: (access) => ({ where: "a terminal", text: claudeCode(startOf(access, "mcp")) }),
  },
  vscode: {
    ...{ title: "VS Code", speaks: "mcp" },
    snippet: (access) => inFile(".vscode/mcp.json", { servers: { io: { type: "stdio", ...startOf(access, "mcp") } } }),
  },
  cursor: {
    ...{ title: "Cursor", speaks: "mcp" },
    snippet: (access) => inFile("~/.cursor/mcp.json", { mcpServers: { io: startOf(access, "mcp") } }),
  },
  "open-webui": {
    ...{ title: "Open WebUI", speaks: "openai" },
    snippet: ({ url, token }) => ({
      where: "a connection of Open WebUI's settings",
      text: `URL: ${url}/v1\nKey: ${token}\nModel: io`,
    }),
  },
} satisfies Record<string, Client>;
export type ClientName = keyof typeof CLIENTS;

function startOf({ env }: ClientAccess, mode: "acp" | "mcp"): Start {
  const args = [join(packageRoot, "bin", "io.js"), mode];
  return { command: process.execPath, args, ...(env.IO_HOME && { env: { IO_HOME: resolve(env.IO_HOME) } }) };
}

const inFile = (where: string, content: unknown): Snippet => ({ where, text: JSON.stringify(content, null, 2) });

function claudeCode({ command, args, env = {} }: Start): string {
  const variables = Object.entries(env).flatMap(([name, value]) => ["--env", `${name}=${value}`]);
  return ["claude", "mcp", "add", "io", ...variables, "--", command, ...args].map(quotedForShell).join(" ");
}

function luaOf({ command, args, env = {} }: Start): string {
  const list = args.map((arg) => JSON.stringify(arg)).join(", ");
  const variables = Object.entries(env).map(([name, value]) => `${name} = ${JSON.stringify(value)}`);
  const last = variables.length > 0 ? `, env = { ${variables.join(", ")} }` : "";
  return `provider = "io",\nacp_providers = {\n  io = { command = ${JSON.stringify(command)}, args = { ${list} }${last} },\n},`;
}
