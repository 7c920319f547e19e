import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { describeStatus, engineLine } from "../client/status.ts";
import { endLeftoverRuntimes } from "../engine/runtime/leftovers.ts";
import { loadConfig } from "../home/config.ts";
import { type DaemonFile, readDaemonFile } from "../home/daemon-file.ts";
import { ensureHome } from "../home/paths.ts";
import { ExitCode, UserError } from "../lib/errors.ts";
import { packageRoot } from "../lib/package-root.ts";
import { waitForExit } from "../process/processes.ts";
import type { Status } from "../protocol/api.ts";
import { lockHolder } from "../store/lock.ts";
import type { Shell } from "./output.ts";
import { serve } from "./serve.ts";
import { settledDaemon } from "./settled.ts";
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
      const running = await settledDaemon(shell);
      if (running && (await stays(shell))) return printStart(shell, options, running);
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
      await printStart(shell, options, await restartDaemon(shell, options.selfEdit === true));
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
  const started = await whileWorking(shell, "starting", () => startInBackground(shell, { selfEdit: options.selfEdit === true }));
  await printStart(shell, options, started);
}

/** Keeps a daemon running that was started for one run and would end after it. False if it was started to stay. */
async function stays(shell: Shell): Promise<boolean> {
  const client = shell.client();
  const { endsWhenIdle } = await client.request<Status>("GET", "/api/status");
  if (endsWhenIdle) await client.request<Status>("POST", "/api/stay");
  return endsWhenIdle;
}

/** Stops the running daemon and starts it in the background. Errors that would prevent the start appear before anything stops. */
export async function restartDaemon(shell: Shell, selfEdit = false): Promise<DaemonFile> {
  const { checkStart } = await import("../daemon/check-start.ts");
  await checkStart(shell.env).catch((error: unknown) => {
    if (!(error instanceof UserError) || !shell.daemon()) throw error;
    throw new UserError(`${error.message}\nThe daemon was not stopped and goes on as it was.`, {
      exitCode: error.exitCode,
      cause: error,
    });
  });
  if (await settledDaemon(shell)) await stopDaemon(shell);
  return startInBackground(shell, { selfEdit });
}

async function printStart(shell: Shell, options: { json?: boolean }, { host, port, pid }: DaemonFile): Promise<void> {
  const status = await shell.client().request<Status>("GET", "/api/status");
  const { port: wanted } = shell.env.IO_PORT ? { port } : loadConfig(shell.paths.config);
  if (wanted !== 0 && wanted !== port)
    shell.note(`Port ${wanted} is taken by another program, so this data folder is served on port ${port}.`);
  shell.print(status, shell.typed(`IO serves at http://${host}:${port} (pid ${pid}). ${engineLine(status)}`), options);
}

interface StartOptions {
  selfEdit?: boolean;
  /** Whether it ends when it has nothing left to do. */
  untilIdle?: boolean;
  /** Its environment; by default this command's. */
  env?: NodeJS.ProcessEnv;
  /** Aborts the start until the daemon serves. */
  signal?: AbortSignal;
  /** How long it may take until it serves. */
  readyMs?: number;
}

/** Starts a daemon unless one runs, and returns whether it did. Another command may be starting one at the same time. */
export async function ensureDaemon(shell: Shell, options: StartOptions = {}): Promise<boolean> {
  if (await settledDaemon(shell)) return false;
  try {
    await startInBackground(shell, options);
    return true;
  } catch (error) {
    if (options.signal?.aborted || !(error instanceof UserError) || !(await settledDaemon(shell))) throw error;
    return false;
  }
}

/** Starts a daemon that outlives this command, and waits until it serves. */
export async function startInBackground(shell: Shell, options: StartOptions = {}): Promise<DaemonFile> {
  const { selfEdit = false, untilIdle = false, env = shell.env, signal, readyMs = READY_MS } = options;
  const { paths } = shell;
  ensureHome(paths);
  const outFile = join(paths.logs, "daemon.out");
  rmSync(outFile, { force: true });
  const out = openSync(outFile, "a", 0o600);
  const flags = ["--daemon", "--background", ...(selfEdit ? ["--self-edit"] : []), ...(untilIdle ? ["--until-idle"] : [])];
  const args = [join(packageRoot, "bin", "io.js"), ...flags];
  const child = spawn(process.execPath, args, { env, detached: true, stdio: ["ignore", out, out] });
  closeSync(out);
  // It outlives this command also where the start failed or took too long.
  child.unref();
  let code: number | null | undefined;
  child.once("exit", (exitCode) => {
    code = exitCode;
  });
  const until = performance.now() + readyMs;
  while (performance.now() < until) {
    const daemon = readDaemonFile(paths.daemon);
    if (daemon?.pid === child.pid) return daemon!;
    if (code !== undefined) {
      throw new UserError(readFileSync(outFile, "utf8").trim() || `The daemon ended at once (exit ${code}).`, {
        exitCode: code === ExitCode.usage ? ExitCode.usage : ExitCode.failed,
      });
    }
    if (signal?.aborted) {
      child.kill("SIGKILL");
      throw new UserError("Interrupted.", { exitCode: ExitCode.interrupted });
    }
    await sleep(25);
  }
  throw new UserError(`The daemon (pid ${child.pid}) does not serve after ${readyMs / 1000} s. See ${outFile} and "io logs".`);
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

/** Ends the daemon and runtime of a home that will be deleted, whatever they are doing. */
export async function endDaemon({ daemon, paths }: Shell, withinMs: number): Promise<void> {
  const found = daemon();
  if (found) process.kill(found.pid, "SIGTERM");
  if (found && !(await waitForExit(found.pid, withinMs))) process.kill(found.pid, "SIGKILL");
  await endLeftoverRuntimes(paths.sessions, { warn: () => undefined });
}
