import { chmodSync, mkdirSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { messageOf, UserError } from "../lib/errors.ts";
import { fileError } from "../lib/file-errors.ts";
import { obstacleTo } from "../lib/writable.ts";

/** The path of every file that IO keeps. */
export interface Paths {
  home: string;
  config: string;
  token: string;
  database: string;
  daemon: string;
  /** Locked by the daemon while it runs. */
  lock: string;
  wiki: string;
  skills: string;
  sessions: string;
  logs: string;
  runs: string;
  /** Installed dependencies, reused by runs; hidden from commands. */
  installed: string;
  /** Files that people sent, by conversation. */
  files: string;
  /** A folder for each conversation without a project. */
  work: string;
  /** Clones, while they are inspected; hidden from commands. */
  scratch: string;
  /** The data for undo; hidden from commands. */
  undo: string;
  /** The Copilot runtime, where the package does not contain it unpacked; hidden from commands. */
  runtime: string;
  /** Keys, certificates and data of a NATS server. */
  cluster: string;
  /** This home's identity as a worker. */
  worker: string;
}

export function pathsOf(env: NodeJS.ProcessEnv = process.env): Paths {
  const home = resolve(env.IO_HOME || join(env.HOME || homedir(), ".io"));
  return {
    home,
    config: join(home, "config.json"),
    token: join(home, "token"),
    database: join(home, "io.db"),
    daemon: join(home, "daemon.json"),
    lock: join(home, "daemon.lock"),
    wiki: join(home, "wiki"),
    skills: join(home, "skills"),
    sessions: join(home, "sessions"),
    logs: join(home, "logs"),
    runs: join(home, "runs"),
    installed: join(home, "installed"),
    files: join(home, "files"),
    work: join(home, "work"),
    scratch: join(home, "scratch"),
    undo: join(home, "undo"),
    runtime: join(home, "runtime"),
    cluster: join(home, "cluster"),
    worker: join(home, "worker.json"),
  };
}

/** Creates the data folder and its subfolders, readable only by their owner. */
export function ensureHome(paths: Paths): void {
  try {
    for (const folder of [paths.home, paths.wiki, paths.skills, paths.sessions, paths.logs, paths.runs, paths.scratch]) {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
    }
    if ((statSync(paths.home).mode & 0o777) !== 0o700) chmodSync(paths.home, 0o700);
  } catch (error) {
    const why = obstacleTo(paths.home) ?? fileError(error)?.message ?? messageOf(error);
    throw new UserError(`${paths.home}: the data folder cannot be made. ${why} IO_HOME can name another folder.`, {
      cause: error,
    });
  }
}
