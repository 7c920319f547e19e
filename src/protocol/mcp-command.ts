import { quotedForShell } from "../lib/invocation.ts";
import type { McpServer } from "./mcp.ts";

/** What stands behind `io mcp enable` and its siblings for this server. Names of projects' servers are those of strangers. */
export function mcpArguments({ name, project }: Pick<McpServer, "name" | "project">): string {
  return `${quotedForShell(name)}${project === null ? "" : ` --project ${quotedForShell(project)}`}`;
}

/** How the detail of a server begins whose login has expired. */
export const LOGIN_EXPIRED = "its last login has expired";
