import { rmSync } from "node:fs";
import type { Channel } from "../channels/channel.ts";
import type { Choice } from "../engine/models/ladder.ts";
import { ensureToken } from "../home/api-token.ts";
import { rawConfig } from "../home/config.ts";
import type { DaemonFile } from "../home/daemon-file.ts";
import { createLiveConfig } from "../home/live-config.ts";
import { modeFrom } from "../home/modes.ts";
import { ensureHome, type Paths, pathsOf } from "../home/paths.ts";
import { writeFileAtomic } from "../lib/atomic.ts";
import { packageVersion } from "../lib/version.ts";
import { openRuns } from "../store/runs.ts";
import { createSquadStore } from "../store/squads.ts";
import type { Job } from "../workers/jobs/port.ts";
import { unlessAborted } from "./abort.ts";
import { addressOf, urlOf } from "./address.ts";
import { buildRooms, type Rooms } from "./build.ts";
import { type Closers, withClosers } from "./closers.ts";
import { createClusterSwitch } from "./cluster.ts";
import { type Core, createCore } from "./core.ts";
import { logFailures, logRecoveries } from "./failure-log.ts";
import { buildHttp, statusOf, stopAllIn } from "./http.ts";
import { createIdleEnd } from "./idle-end.ts";
import { lockHome } from "./lock-home.ts";
import { hideNewSecrets } from "./secrets.ts";
import { buildTelegram } from "./telegram.ts";

export interface DaemonDeps {
  env: NodeJS.ProcessEnv;
  selfEdit?: boolean;
  /** It was started for one piece of work, and is to end when nothing is left to do. */
  untilIdle?: boolean;
  /** Receives each line of the log. */
  echo?: (line: string) => void;
  /** Aborts a start in progress; a serving daemon is ended by its own `stop`. */
  signal?: AbortSignal;
  /** Further channels, for programs that embed IO. */
  moreChannels?: (rooms: Rooms) => readonly Channel[];
}

/** A daemon that serves. */
export interface Daemon {
  url: string;
  choice: Choice;
  paths: Paths;
  /** Resolves when a daemon that was started for one piece of work has nothing left to do; never for any other. */
  idle: Promise<void>;
  /** Resolves when everything is closed; the next start finishes what was in progress. */
  stop(): Promise<void>;
}

/** Builds everything, top to bottom, and starts it. A start that fails or is aborted leaves nothing open. */
export function startDaemon(deps: DaemonDeps): Promise<Daemon> {
  const { env, selfEdit = false, untilIdle = false, echo, signal, moreChannels = () => [] } = deps;
  return withClosers(async (closers) => {
    const startedAt = new Date();
    const version = packageVersion();
    const paths = pathsOf(env);
    const file = createLiveConfig(paths.config, { ...modeFrom(env), ...(selfEdit && { selfEditEnabled: true }) });
    const { host, port } = addressOf(file.current(), env);
    ensureHome(paths);
    lockHome(paths, closers);

    const token = env.IO_TOKEN || ensureToken(paths.token);
    const core = await createCore({ env, paths, settings: file, token, closers, ...(echo && { echo }) });
    const { engine, hub, log, choice, redactor } = core;
    const settings = hideNewSecrets(file, { redactor, env, token });
    signal?.throwIfAborted();
    // The runtime starts in its own process while the rest is loaded here; its result is awaited below.
    const starting = engine.start();
    starting.catch(() => undefined);

    const cluster = createClusterSwitch({ core, env, paths, settings, isWanted: wantedIn(core) });
    closers.add(cluster.close);
    await cluster.prepare();
    const { dispatcher } = cluster;
    const rooms = buildRooms({ core, env, paths, version, settings, closers, channels: () => channels, dispatcher });
    const idleEnd = createIdleEnd();
    closers.add(idleEnd.stay);
    const stopAll = () => stopAllIn(rooms);
    const status = () => {
      const info = telegram.status();
      const { name, state, since, detail } = info;
      const others = state === "off" ? [] : [{ name, state, since, detail }];
      const workers = settings.current().cluster ? cluster.status() : null;
      return statusOf({
        core,
        rooms,
        version,
        home: paths.home,
        startedAt,
        endsWhenIdle: idleEnd.isOn(),
        channels: others,
        cluster: workers,
      });
    };
    const telegram = buildTelegram({ core, rooms, env, paths, settings, status, stopAll });
    const http = await buildHttp({
      core,
      rooms,
      env,
      paths,
      version,
      settings,
      token,
      host,
      port,
      telegram,
      cluster,
      status,
      stopAll,
      stay() {
        idleEnd.stay();
        return status();
      },
      // Nobody chose the default port, so a second data folder takes a free one.
      anyPort: untilIdle || isDefaultPort(paths.config, env),
    });
    const channels: Channel[] = [http, ...moreChannels(rooms), telegram];
    for (const channel of channels) closers.add(channel.close);
    for (const channel of channels) await channel.start();
    const bound = http.port();
    await unlessAborted(starting, signal);

    closers.add(logFailures(hub, log));
    logRecoveries(rooms, log);
    rooms.start();
    void cluster.follow();
    announce(paths, { pid: process.pid, host, port: bound, version, startedAt: startedAt.toISOString() }, closers);
    if (port !== 0 && bound !== port) log.warn(`port ${port} is taken; this data folder is served on port ${bound}`);
    log.info("IO serves", { host, port: bound, engine: choice.kind, model: choice.model });
    const idle = untilIdle
      ? idleEnd.start(async () => hasWork(rooms) || (await http.hasClients()))
      : new Promise<void>(() => undefined);
    return { url: urlOf({ host, port: bound }), choice, paths, idle, stop: closers.close };
  });
}

/** Whether neither the environment nor the config names a port. */
const isDefaultPort = (config: string, env: NodeJS.ProcessEnv): boolean => !env.IO_PORT && rawConfig(config).port === undefined;

/** Whether a job belongs to a task or run that is still open. */
function wantedIn({ store }: Core): (job: Job) => boolean {
  const tasks = createSquadStore(store);
  const runs = openRuns(store);
  const isRunning = (owner: string) => runs.get(owner.split("/", 1)[0] ?? "")?.status === "running";
  return ({ kind, spec }) => {
    const owner = String(spec.owner);
    return kind === "turn" && (tasks.openTasks().some(({ id }) => id === owner) || isRunning(owner));
  };
}

/** Whether something is running or queued. */
function hasWork({ messages, squads, swarm, plans, pulls }: Rooms): boolean {
  const { queued, running } = messages.counts();
  const { tasksQueued, tasksRunning } = squads.counts();
  return queued + running + tasksQueued + tasksRunning > 0 || swarm.running().length > 0 || !plans.isIdle() || pulls.isBusy();
}

/** Tells clients where the daemon is, while it serves. */
function announce(paths: Paths, daemon: DaemonFile, closers: Closers): void {
  closers.add(() => rmSync(paths.daemon, { force: true }));
  writeFileAtomic(paths.daemon, `${JSON.stringify(daemon)}\n`);
}
