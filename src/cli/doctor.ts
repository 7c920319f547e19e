import type { Command } from "commander";
import { ExitCode, UserError } from "../lib/errors.ts";
import type { McpServer } from "../protocol/mcp.ts";
import type { Shell } from "./output.ts";
import { whileWorking } from "./working.ts";

const serversOf = (shell: Shell) => async () =>
  (await shell.client().request<{ items: McpServer[] }>("GET", "/api/mcp?everywhere=true")).items;

export function doctorCommand(program: Command, shell: Shell): void {
  program
    .command("doctor")
    .description("check everything IO needs, with a remedy for each finding")
    .option("--fix", "mend what can be mended without asking")
    .option("--json", "print one JSON document")
    .action(async (options: { fix?: boolean; json?: boolean }) => {
      const { examine } = await import("../daemon/doctor.ts");
      const interrupt = new AbortController();
      for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => interrupt.abort());
      const { signal } = interrupt;
      const { paths, env } = shell;
      const report = await whileWorking(shell, "looking at everything", () =>
        examine({ paths, env, fix: options.fix === true, signal, ...(shell.daemon() && { servers: serversOf(shell) }) }),
      );
      if (signal.aborted) throw new UserError("Interrupted. Not everything was looked at.", { exitCode: ExitCode.interrupted });
      const signs = { ok: "ok  ", warning: "warn", failed: "FAIL" };
      const lines = report.items.map(({ check, state, found, remedy, fixed }) => {
        const advice = state !== "ok" && remedy ? `\n                ${remedy}` : fixed ? " (mended)" : "";
        return `${signs[state]}  ${check.padEnd(9)} ${found}${advice}`;
      });
      shell.print(report, lines.join("\n"), options);
      if (!report.ok) process.exitCode = ExitCode.failed;
    });
}
