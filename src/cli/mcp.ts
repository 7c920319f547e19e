import { existsSync } from "node:fs";
import type { Command } from "commander";
import { isAway } from "../channels/mcp/access.ts";
import { type Client, connect } from "../client/client.ts";
import { packageVersion } from "../lib/version.ts";
import { reachDaemon } from "./chat.ts";
import { mcpServerCommands } from "./mcp-servers.ts";
import type { Shell } from "./output.ts";

/** IO as an MCP server for programs that start it; and the commands for the user's own servers. */
export function mcpCommand(program: Command, shell: Shell): void {
  const mcp = program
    .command("mcp")
    .description("your MCP servers; without a command it serves MCP on standard input and output, for programs that start it")
    .addHelpText("after", "\nPrograms that connect by address use /mcp of the daemon: io token create <name> --for mcp")
    .action(async () => {
      if (process.stdin.isTTY) return mcp.outputHelp();
      await reachDaemon(shell);
      const { paths, env, daemon } = shell;
      const client = connect({ paths, env, daemon, client: "mcp" });
      const { serveMcp } = await import("../daemon/mcp-stdio.ts");
      await serveMcp(reviving(client, shell), packageVersion());
      process.exit();
    });
  mcpServerCommands(mcp, shell);
}

/** How long a killed daemon may stay away before it is started here: a service starts it sooner. */
const KILLED_MS = 5_000;

/** Requests that start a killed daemon again. One that was stopped stays so: it removed its file. */
function reviving(client: Client, shell: Shell): Client["request"] {
  let lostAt: number | undefined;
  return async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const send = () => client.request<T>(method, path, body);
    try {
      const answer = await send();
      lostAt = undefined;
      return answer;
    } catch (error) {
      if (!isAway(error)) lostAt = undefined;
      if (!isAway(error) || !existsSync(shell.paths.daemon)) throw error;
      // The daemon may have received this request. A later one finds nobody, so it can be sent again.
      lostAt ??= performance.now();
      if (performance.now() - lostAt < KILLED_MS) throw error;
      await reachDaemon(shell);
      return send();
    }
  };
}
