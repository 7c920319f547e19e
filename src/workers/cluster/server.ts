import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { isAlive } from "../../lib/alive.ts";
import { messageOf } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import { smallTextAt } from "../../lib/pinned/read.ts";
import { commandOf, hasEnvironment, waitForExit } from "../../process/processes.ts";
import type { ClusterFiles } from "./materials.ts";

export interface ServerDeps {
  program: string;
  files: ClusterFiles;
  logFile: string;
  /** IO's data folder, which identifies this server among others. */
  home: string;
  env: NodeJS.ProcessEnv;
  log: Log;
}

/** The supervised server process. */
export interface Server {
  pid(): number | null;
  /** Why it last ended, until it is back. */
  trouble(): string | null;
  /** Makes it reload its file; users that are still listed stay connected. */
  reload(): void;
  stop(): Promise<void>;
}

const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 30_000;
/** A server that ran this long started properly. */
const SETTLED_MS = 30_000;
const STOP_MS = 5_000;
const MAX_LOG = 10_000_000;

/** Starts the server, and restarts it with backoff whenever it ends. */
export function superviseServer({ program, files, logFile, home, env, log }: ServerDeps): Server {
  let child: ChildProcess | undefined;
  let stopped = false;
  let waitMs = FIRST_WAIT_MS;
  let timer: NodeJS.Timeout | undefined;
  let reloading: NodeJS.Timeout | undefined;
  let trouble: string | null = null;

  function start(): void {
    const startedAt = performance.now();
    let said = "";
    const started = spawn(program, ["-c", files.conf], {
      cwd: files.folder,
      env: { PATH: env.PATH, HOME: env.HOME, IO_HOME: home },
      detached: true,
      stdio: ["ignore", "ignore", "pipe"],
    });
    child = started;
    started.stderr?.on("data", (chunk: Buffer) => {
      said = (said + chunk.toString("utf8")).slice(-500);
    });
    const ended = (how: string) => {
      if (child !== started) return;
      child = undefined;
      rmSync(files.pid, { force: true });
      if (stopped) return;
      if (performance.now() - startedAt > SETTLED_MS) waitMs = FIRST_WAIT_MS;
      const why = said.trim() || lastErrorIn(logFile);
      trouble = `nats-server ended (${how})${why ? `: ${why}` : ""}. Its log is ${logFile}`;
      log.warn("the cluster's server ended and is started again", { how, why, inMs: waitMs });
      timer = setTimeout(start, waitMs);
      waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS);
    };
    started.once("error", (error) => ended(messageOf(error)));
    started.once("exit", (code, signal) => ended(signal ?? `exit ${code}`));
    started.once("spawn", () => {
      trouble = null;
    });
  }
  start();

  return {
    pid: () => child?.pid ?? null,
    trouble: () => trouble,
    reload() {
      clearInterval(reloading);
      const tell = () => {
        // Until it has written its pid file it does not handle signals, and SIGHUP would end it.
        if (child?.pid === undefined || numberIn(files) !== child.pid) return;
        clearInterval(reloading);
        child.kill("SIGHUP");
      };
      reloading = setInterval(tell, 20);
      tell();
    },
    async stop() {
      stopped = true;
      clearTimeout(timer);
      clearInterval(reloading);
      const last = child;
      if (!last?.pid || last.exitCode !== null || last.signalCode !== null) return;
      const gone = once(last, "exit");
      last.kill("SIGTERM");
      const hard = setTimeout(() => last.kill("SIGKILL"), STOP_MS);
      await gone;
      clearTimeout(hard);
    },
  };
}

/**
 * Ends a server of this home that outlived its killed daemon and would hold the port and the data. Leaves every other process
 * alone.
 */
export async function endLeftoverServer({ files, home, log }: Pick<ServerDeps, "files" | "home" | "log">): Promise<void> {
  const pid = numberIn(files);
  if (Number.isInteger(pid) && pid > 1 && isAlive(pid) && (await isOurs(pid, files, home))) {
    log.warn("a server of an earlier life was still there and was ended", { pid });
    signal(pid, "SIGTERM");
    if (!(await waitForExit(pid, STOP_MS)) && (await isOurs(pid, files, home))) signal(pid, "SIGKILL");
    await waitForExit(pid, 2_000);
  }
  rmSync(files.pid, { force: true });
}

/** Checks the command line and, if readable, the environment: a stranger may have the dead process's pid by now. */
async function isOurs(pid: number, { conf }: ClusterFiles, home: string): Promise<boolean> {
  const command = await commandOf(pid);
  return command.includes("nats-server") && command.endsWith(`-c ${conf}`) && hasEnvironment(pid, "IO_HOME", home) !== false;
}

/** The server's last error in its log, without the pid and the time. */
function lastErrorIn(logFile: string): string {
  const lines = (smallTextAt(logFile, MAX_LOG) ?? "").split("\n");
  return (
    lines
      .findLast((line) => /\[(?:FTL|ERR)\]/.test(line))
      ?.replace(/^.{0,60}\[(?:FTL|ERR)\] /, "")
      .slice(0, 300) ?? ""
  );
}

const numberIn = ({ pid }: ClusterFiles): number => Number.parseInt(smallTextAt(pid) ?? "", 10);

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It ended in the meantime.
  }
}
