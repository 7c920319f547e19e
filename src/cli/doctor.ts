import type { Command } from "commander";
import type { Client } from "../client/client.ts";
import { ExitCode, UserError } from "../lib/errors.ts";
import type { DoctorReport } from "../protocol/doctor.ts";
import type { Shell } from "./output.ts";
import { whileWorking } from "./working.ts";

export function doctorCommand(program: Command, shell: Shell): void {
  program
    .command("doctor")
    .description("check everything IO needs, with a remedy for each finding")
    .option("--fix", "mend what can be mended without asking")
    .option("--json", "print one JSON document")
    .action(async (options: { fix?: boolean; json?: boolean }) => {
      const report = await whileWorking(shell, "looking at everything", () => examined(shell, options.fix === true));
      const signs = { ok: "ok  ", warning: "warn", failed: "FAIL" };
      const lines = report.items.map(({ check, state, found, remedy, fixed }) => {
        const advice = state !== "ok" && remedy ? `\n                ${remedy}` : fixed ? " (mended)" : "";
        return `${signs[state]}  ${check.padEnd(9)} ${found}${advice}`;
      });
      shell.print(report, lines.join("\n"), options);
      if (!report.ok) process.exitCode = ExitCode.failed;
    });
}

/** A running daemon looks itself: the data folder is its own, and so is the environment in which the model has to work. */
async function examined(shell: Shell, fix: boolean): Promise<DoctorReport> {
  if (shell.daemon())
    try {
      return await askDaemon(shell.client(), fix);
    } catch (error) {
      if (!(error instanceof UserError) || error.exitCode !== ExitCode.unreachable) throw error;
      shell.note(`${error.message} So what it needs is looked at from here.`);
    }
  const { examine } = await import("../daemon/doctor.ts");
  const interrupt = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => interrupt.abort());
  const { signal } = interrupt;
  const report = await examine({ paths: shell.paths, env: shell.env, fix, signal });
  if (signal.aborted) throw new UserError("Interrupted. Not everything was looked at.", { exitCode: ExitCode.interrupted });
  return report;
}

async function askDaemon(client: Client, fix: boolean): Promise<DoctorReport> {
  const report = await client.request<DoctorReport>("GET", "/api/doctor");
  const checks = fix ? new Set(report.items.filter(({ mendable }) => mendable).map(({ check }) => check)) : [];
  for (const check of checks) {
    const { items } = await client.request<DoctorReport>("POST", "/api/doctor/mend", { check });
    const at = report.items.findIndex((item) => item.check === check);
    report.items = report.items.filter((item) => item.check !== check).toSpliced(at, 0, ...items);
  }
  return { ok: report.items.every(({ state }) => state !== "failed"), items: report.items };
}
