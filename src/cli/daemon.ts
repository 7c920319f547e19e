import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { describeStatus, engineLine } from "../client/status.ts";
import { type DaemonFile, readDaemonFile } from "../lib/daemon-file.ts";
import { ExitCode, UserError } from "../lib/errors.ts";
import { ensureHome, packageRoot } from "../lib/paths.ts";
import { waitForExit } from "../process/processes.ts";
import type { Status } from "../protocol/api.ts";
import { lockHolder } from "../store/lock.ts";
import type { Shell } from "./output.ts";
import { serve } from "./serve.ts";
import { whileWorking } from "./working.ts";

const READY_MS = 30_000;
const STOP_MS = 10_000;

export function daemonCommands(program: Command, shell: Shell): void {
  program
    .command("start")
    .description("start the daemon in the background")
    .option("--foreground", "stay in the foreground until stopped")
    .option("--self-edit", "let IO change its own code, for this life only")
    .option("--json", "print one JSON document")
    .action(async (options: { foreground?: boolean; selfEdit?: boolean; json?: boolean }) => {
      if (options.foreground) return serve(shell, options);
      const running = shell.daemon();
      if (running)
        throw new UserError(`A daemon already runs on ${shell.paths.home} (pid ${running.pid}, port ${running.port}).`);
      await startAndTell(shell, options);
    });

  program
    .command("stop")
    .description("stop the daemon; what is under way is finished by the next start")
    .option("--json", "print one JSON document")
    .action(async (options: { json?: boolean }) => {
      const daemon = await stopDaemon(shell);
      shell.print({ stopped: true, pid: daemon.pid }, `IO stopped (pid ${daemon.pid}).`, options);
    });

  program
    .command("restart")
    .description("stop the daemon if it runs, and start it")
    .option("--self-edit", "let IO change its own code, for this life only")
    .option("--json", "print one JSON document")
    .action(async (options: { selfEdit?: boolean; json?: boolean }) => {
      await tellStart(shell, options, await restartDaemon(shell, options.selfEdit === true));
    });

  program
    .command("status")
    .description("what the daemon is doing")
    .option("--json", "print one JSON document")
    .action(async (options: { json?: boolean }) => {
      const client = shell.client();
      const status = await client.request<Status>("GET", "/api/status");
      shell.print(status, shell.typed(describeStatus(status, client.url)), options);
    });
}

async function startAndTell(shell: Shell, options: { selfEdit?: boolean; json?: boolean }): Promise<void> {
  const started = await whileWorking(shell, "starting", () => startInBackground(shell, options.selfEdit === true));
  await tellStart(shell, options, started);
}

/** Stops the daemon if one runs, and starts it in the background. */
export async function restartDaemon(shell: Shell, selfEdit = false): Promise<DaemonFile> {
  if (await settledDaemon(shell)) await stopDaemon(shell);
  return startInBackground(shell, selfEdit);
}

async function tellStart(shell: Shell, options: { json?: boolean }, { host, port, pid }: DaemonFile): Promise<void> {
  const status = await shell.client().request<Status>("GET", "/api/status");
  shell.print(status, shell.typed(`IO serves at http://${host}:${port} (pid ${pid}). ${engineLine(status)}`), options);
}

/** Starts a daemon that outlives this command, and waits until it serves. */
export async function startInBackground(shell: Shell, selfEdit = false): Promise<DaemonFile> {
  const { paths, env } = shell;
  ensureHome(paths);
  const outFile = join(paths.logs, "daemon.out");
  rmSync(outFile, { force: true });
  const out = openSync(outFile, "a", 0o600);
  const args = [join(packageRoot, "bin", "io.js"), "--daemon", "--background", ...(selfEdit ? ["--self-edit"] : [])];
  const child = spawn(process.execPath, args, { env, detached: true, stdio: ["ignore", out, out] });
  closeSync(out);
  let code: number | null | undefined;
  child.once("exit", (exitCode) => {
    code = exitCode;
  });
  const until = performance.now() + READY_MS;
  while (performance.now() < until) {
    const daemon = readDaemonFile(paths.daemon);
    if (daemon?.pid === child.pid) {
      child.unref();
      return daemon!;
    }
    if (code !== undefined) {
      throw new UserError(readFileSync(outFile, "utf8").trim() || `The daemon ended at once (exit ${code}).`, {
        exitCode: code === ExitCode.usage ? ExitCode.usage : ExitCode.failed,
      });
    }
    await sleep(25);
  }
  throw new UserError(`The daemon (pid ${child.pid}) does not serve after ${READY_MS / 1000} s. See ${outFile} and "io logs".`);
}

export async function stopDaemon(shell: Shell): Promise<DaemonFile> {
  const daemon = await settledDaemon(shell);
  if (!daemon) throw new UserError(`No daemon runs on ${shell.paths.home}.`, { exitCode: ExitCode.unreachable });
  process.kill(daemon.pid, "SIGTERM");
  if (!(await waitForExit(daemon.pid, STOP_MS)) && lockHolder(shell.paths.lock)) {
    process.kill(daemon.pid, "SIGKILL");
    await waitForExit(daemon.pid, 2_000);
  }
  return daemon;
}

/** The daemon that serves, once one that is just starting or ending has done so. */
async function settledDaemon({ daemon, paths }: Shell): Promise<DaemonFile | undefined> {
  const until = performance.now() + STOP_MS;
  for (;;) {
    const found = daemon();
    const holder = lockHolder(paths.lock);
    if (found || !holder) return found;
    if (performance.now() > until)
      throw new UserError(
        `A daemon${holder.pid ? ` (pid ${holder.pid})` : ""} holds ${paths.home} and does not serve: it is still starting, or cannot end. See "io logs", or end its process yourself.`,
        { exitCode: ExitCode.unreachable },
      );
    await sleep(50);
  }
}
