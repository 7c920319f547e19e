import { chmodSync, existsSync, mkdirSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { messageOf, UserError } from "./errors.ts";
import { fileError } from "./file-errors.ts";
import { obstacleTo } from "./writable.ts";

/** Every file IO keeps, by name. */
export interface Paths {
  home: string;
  config: string;
  token: string;
  database: string;
  daemon: string;
  /** Held by the daemon for as long as it lives. */
  lock: string;
  wiki: string;
  skills: string;
  sessions: string;
  logs: string;
  runs: string;
  /** What people sent, by conversation. */
  files: string;
  /** Where clones are looked through before anything of them is used; no command sees it. */
  scratch: string;
  /** The keys, certificates and data of a server for workers. */
  cluster: string;
  /** Who this home is as a worker of another. */
  worker: string;
}

/** The root of the installed package: the folder that holds `bin`, `dist`, `agents`. */
export const packageRoot = findRoot(dirname(fileURLToPath(import.meta.url)));

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
    files: join(home, "files"),
    scratch: join(home, "scratch"),
    cluster: join(home, "cluster"),
    worker: join(home, "worker.json"),
  };
}

/** Makes the data folder and its rooms, readable by their owner alone. */
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

/** Built code lies flatter than its source, so the root is looked for and not counted. */
function findRoot(folder: string): string {
  if (existsSync(join(folder, "package.json")) || dirname(folder) === folder) return folder;
  return findRoot(dirname(folder));
}
