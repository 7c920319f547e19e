import type { Served } from "../channels/http/programs.ts";
import type { IoAccess } from "../channels/mcp/access.ts";
import type { Log } from "../lib/log.ts";

/** Loads the MCP server when the first client connects. */
export function createMcpLoader({ version, log }: { version: string; log: Log }) {
  let loading: Promise<Served> | undefined;
  return (access: IoAccess): Promise<Served> => {
    loading ??= import("../channels/mcp/http.ts").then(({ createMcpHttp }) => createMcpHttp({ access, version, log }));
    return loading;
  };
}
