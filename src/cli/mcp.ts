import { existsSync } from "node:fs";
import type { Command } from "commander";
import { connect } from "../client/client.ts";
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
      const request = <T>(method: string, path: string, body?: unknown) => client.request<T>(method, path, body);
      // Only a daemon that ends in order removes its file.
      const wasStopped = () => !existsSync(paths.daemon);
      await serveMcp({ request, wasStopped, start: () => reachDaemon(shell) }, packageVersion());
      process.exit();
    });
  mcpServerCommands(mcp, shell);
}
