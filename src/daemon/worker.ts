import { mkdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { createLiveConfig } from "../home/live-config.ts";
import { ensureHome, pathsOf } from "../home/paths.ts";
import { packageVersion } from "../lib/version.ts";
import { runAsWorker, type WorkerSetup } from "../workers/cluster/run-worker.ts";
import type { WorkerFile } from "../workers/cluster/worker-file.ts";
import { createInstaller } from "../workers/remote/installer.ts";
import { createProjects } from "../workers/remote/projects.ts";
import { createWorker } from "../workers/remote/worker.ts";
import { withClosers } from "./closers.ts";
import { createCore } from "./core.ts";
import { lockHome } from "./lock-home.ts";

export interface WorkerDeps {
  env: NodeJS.ProcessEnv;
  file: WorkerFile;
  /** Tells a person who watches. */
  note: (text: string) => void;
  /** Ends it: its current jobs go to another worker. */
  signal: AbortSignal;
  /** Receives each line of the log. */
  echo?: (line: string) => void;
}

/** Works for another home until that is over: the same runtime, gate and sandbox, with jobs instead of messages. */
export async function runWorker({ env, file, note, signal, echo }: WorkerDeps): Promise<void> {
  const { log, prepare, close } = await withClosers(async (closers) => {
    const paths = pathsOf(env);
    ensureHome(paths);
    lockHome(paths, closers);
    // Nobody could answer questions here: the daemon that sent the work asks.
    const settings = createLiveConfig(paths.config, { mode: "full" });
    const core = await createCore({ env, paths, settings, token: undefined, closers, ...(echo && { echo }) });
    const { engine, gate, git, machine, sandbox, redactor, log } = core;
    redactor.hide(file.access.nkeySeed);

    async function prepare(): Promise<WorkerSetup> {
      await engine.start();
      // Beside the data folder, because no repository inside it may be worked on.
      const folder = join(dirname(paths.home), `${basename(paths.home)}-projects`);
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      const { wrap } = sandbox;
      const projects = createProjects({ git, folder, installer: createInstaller({ wrap, env, redactor, log }), log });
      const tools = [machine.shell, ...machine.background, machine.files];
      // Nobody elsewhere may loosen what this host's administrator set.
      const mayLeave = () => settings.current().sandbox === undefined;
      const worker = createWorker({ engine, gate, tools, projects, wrap, env, redactor, mayLeave, log });
      const { kind } = await sandbox.status();
      const wall = kind === "open" ? "none" : sandbox.height();
      return { worker, about: { version: packageVersion(), engine: core.choice.kind, wall } };
    }
    return { log, prepare, close: closers.close };
  });
  try {
    await runAsWorker({ ...file, prepare, log, note, signal });
  } finally {
    await close();
  }
}
