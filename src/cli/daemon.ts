import { spawn } from "node:child_process";
import { closeSync, existsSync, openSync, readFileSync, rmSync, statSync, watchFile } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Command } from "commander";
import { CONNECT, describeStatus, engineLine } from "../client/status.ts";
import { type DaemonFile, readDaemonFile } from "../lib/daemon-file.ts";
import { ExitCode, messageOf, UserError } from "../lib/errors.ts";
import { ensureHome, packageRoot } from "../lib/paths.ts";
import { terminalSafe } from "../lib/terminal-safe.ts";
import { waitForExit } from "../process/processes.ts";
import type { Status } from "../protocol/api.ts";
import { lockHolder } from "../store/lock.ts";
import { wholeNumber } from "./input.ts";
import type { Shell } from "./output.ts";

const READY_MS = 30_000;
const STOP_MS = 10_000;
/** Less than a stop waits for, so that a daemon ends by itself. */
const CLOSE_MS = 7_000;

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
      if (await settledDaemon(shell)) await stopDaemon(shell);
      await startAndTell(shell, options);
    });

  program
    .command("status")
    .description("what the daemon is doing")
    .option("--json", "print one JSON document")
    .action(async (options: { json?: boolean }) => {
      const client = shell.client();
      const status = await client.request<Status>("GET", "/api/status");
      shell.print(status, describeStatus(status, client.url), options);
    });

  program
    .command("logs")
    .description("the daemon's log")
    .option("-f, --follow", "go on with what comes")
    .option("-n, --lines <count>", "how many lines", "100")
    .option("--json", "print one JSON document (with -f: one a line)")
    .action(async (options: { follow?: boolean; lines: string; json?: boolean }) => {
      const file = join(shell.paths.logs, "io.log");
      const most = wholeNumber("--lines", options.lines);
      const lines = existsSync(file) ? readFileSync(file, "utf8").trimEnd().split("\n").slice(-most) : [];
      const items = lines.filter(Boolean).map(readLine);
      if (options.json && !options.follow) return shell.print({ items }, "", options);
      for (const item of items) process.stdout.write(options.json ? `${JSON.stringify(item)}\n` : `${readable(item)}\n`);
      if (options.follow) await follow(file, options.json === true);
    });
}

async function startAndTell(shell: Shell, options: { selfEdit?: boolean; json?: boolean }): Promise<void> {
  const { host, port, pid } = await startInBackground(shell, options.selfEdit === true);
  const status = await shell.client().request<Status>("GET", "/api/status");
  shell.print(status, `IO serves at http://${host}:${port} (pid ${pid}). ${engineLine(status)}`, options);
}

interface LogLine {
  time: string;
  level: string;
  message: string;
  [field: string]: unknown;
}

/** A line of the log; one that a crash cut off is shown as it stands. */
function readLine(text: string): LogLine {
  try {
    return JSON.parse(text) as LogLine;
  } catch {
    return { time: "", level: "cut", message: text };
  }
}

function readable({ time, level, message, ...fields }: LogLine): string {
  const rest = Object.keys(fields).length > 0 ? ` ${JSON.stringify(fields)}` : "";
  return terminalSafe(`${time.slice(0, 19).replace("T", " ")} ${level.padEnd(5)} ${message}${rest}`);
}

/** Runs the daemon in this process until a signal ends it. */
export async function serve(shell: Shell, { selfEdit = false, background = false }: ServeOptions): Promise<void> {
  const { startDaemon } = await import("../daemon/start.ts");
  // The SDK lets a write to a runtime that has just died escape as a rejection nobody can catch; the turn is taken up again anyway.
  process.on("unhandledRejection", (error) => shell.note(`a failure that nobody waited for: ${messageOf(error)}`));
  const stopping = new AbortController();
  // A second signal is not heard here and so ends the process at once.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => stopping.abort());
  const ended = new Promise<void>((end) => stopping.signal.addEventListener("abort", () => end()));
  ended.then(() => setTimeout(() => giveUp(shell, "it took too long"), CLOSE_MS).unref());

  const echo = background ? {} : { echo: (line: string) => shell.note(readable(readLine(line))) };
  const daemon = await startDaemon({ env: shell.env, selfEdit, signal: stopping.signal, ...echo }).catch((error: unknown) => {
    if (error !== stopping.signal.reason) throw error;
    shell.note("IO was stopped before it served.");
    process.exit(ExitCode.done);
  });
  shell.note(`IO serves at ${daemon.url}; its data is in ${daemon.paths.home}.`);
  shell.note(`Model: ${daemon.choice.why}.`);
  if (daemon.choice.kind === "rehearsal") shell.note(CONNECT);
  await ended;
  await daemon.stop().catch((error: unknown) => giveUp(shell, messageOf(error)));
  process.exit();
}

interface ServeOptions {
  selfEdit?: boolean | undefined;
  /** Nobody watches: the log goes to its file alone. */
  background?: boolean | undefined;
}

/** Stop stops: what cannot be put away in order is left to the next start, which finishes it as after a crash. */
function giveUp(shell: Shell, why: string): never {
  shell.note(`IO could not put everything away: ${why}. Nothing that was acknowledged is lost.`);
  process.exit(ExitCode.failed);
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

async function stopDaemon(shell: Shell): Promise<DaemonFile> {
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

async function follow(file: string, json: boolean): Promise<void> {
  let size = existsSync(file) ? statSync(file).size : 0;
  let rest = "";
  watchFile(file, { interval: 200 }, (now) => {
    if (now.size < size) size = 0;
    const text = readFileSync(file).subarray(size).toString("utf8");
    size += Buffer.byteLength(text);
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) process.stdout.write(`${json ? line : readable(readLine(line))}\n`);
  });
  await new Promise<void>((ended) => process.once("SIGINT", () => ended()));
  process.exit(ExitCode.interrupted);
}
