import type { McpServer, McpServerDetails } from "../protocol/mcp.ts";
import { mcpArguments } from "../protocol/mcp-command.ts";
import { type Entry, variablesOf } from "./entries.ts";
import type { Server } from "./server.ts";
import { serverTools } from "./tools.ts";

/** Whether a server is enabled; "changed" if its configuration differs from the one that was enabled. */
export type Trust = "on" | "off" | "changed";

/** A server for the list; pass `server` only if it is enabled. */
export function viewOf(entry: Entry, trust: Trust, server: Server | undefined): McpServer {
  const { name, from, project, config } = entry;
  const transport = config?.url === undefined ? "stdio" : config.type === "sse" ? "sse" : "http";
  const about = { name, from, project, transport } as const;
  const nothing = { tools: [], protocol: null };
  if (!config) return { ...about, ...nothing, state: "failed", detail: entry.trouble ?? null };
  if (server) return { ...about, ...server.status(), tools: serverTools([server]).map((tool) => tool.name) };
  if (from === "config") return { ...about, ...nothing, state: "off", detail: null };
  const why = trust === "changed" ? "changed since it was switched on" : "not switched on";
  return { ...about, ...nothing, state: "untrusted", detail: `${why}; io mcp enable ${mcpArguments(entry)} shows it` };
}

/** The same, with the program or address that would be used. */
export function detailsOf(entry: Entry, trust: Trust, server: Server | undefined): McpServerDetails {
  const { config, hash } = entry;
  return {
    ...viewOf(entry, trust, server),
    ...{ command: config?.command ?? null, args: config?.args ?? [], cwd: config?.cwd ?? null, url: config?.url ?? null },
    ...{ variables: variablesOf(entry), hash, withheld: server?.withheld() ?? [] },
  };
}
