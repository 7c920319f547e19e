import { existsSync } from "node:fs";
import type { Command } from "commander";
import { connect } from "../client/client.ts";
import { packageVersion } from "../lib/version.ts";
import { reachDaemon } from "./chat.ts";
import type { Shell } from "./output.ts";

/** IO as an agent for editors that start it. */
export function acpCommand(program: Command, shell: Shell): void {
  const acp = program
    .command("acp")
    .description("serve ACP on standard input and output, for editors that start it; starts the daemon if none runs")
    .option("--setup", "the same as io setup: choose a model, try it, and write a config.json that fits")
    .action(async ({ setup }: { setup?: boolean }) => {
      if (setup) return void (await program.parseAsync(["setup"], { from: "user" }));
      if (process.stdin.isTTY) return acp.outputHelp();
      const { paths, env, daemon } = shell;
      await reachDaemon(shell);
      const { request, upload, events } = connect({ paths, env, daemon, client: "acp" });
      const ready = async () => void (daemon() ?? (await reachDaemon(shell)));
      // Only a daemon that ends in order removes its file.
      const wasStopped = () => !existsSync(paths.daemon);
      const { serveAcp } = await import("../daemon/acp-stdio.ts");
      await serveAcp({ request, upload, events, ready, wasStopped, note: shell.note }, packageVersion());
      process.exit();
    });
}
