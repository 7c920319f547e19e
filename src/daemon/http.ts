import { join } from "node:path";
import type { Http } from "../channels/http/server.ts";
import type { Telegram } from "../channels/telegram/switch.ts";
import type { LiveConfig } from "../lib/live-config.ts";
import { type Paths, packageRoot } from "../lib/paths.ts";
import { realOf } from "../lib/real-path.ts";
import { createConnectionJudge } from "../process/wall/connection-judge.ts";
import type { Status, Stopped } from "../protocol/api.ts";
import { createMessageSearch } from "../store/message-search.ts";
import { createPageWriters } from "../store/page-writers.ts";
import { PHASE_KINDS } from "../swarm/phases/index.ts";
import { readPipeline } from "../swarm/pipeline/file.ts";
import { readRunSettings } from "../swarm/pipeline/settings.ts";
import { openProject } from "../swarm/run/checkout.ts";
import type { Swarm } from "../swarm/run/swarm.ts";
import type { Approvals } from "../tools/approvals/approvals.ts";
import { createSummaries } from "../tools/budgets/summary.ts";
import type { Rooms } from "./build.ts";
import type { ClusterSwitch } from "./cluster.ts";
import type { Core } from "./core.ts";

export interface ApiDeps {
  core: Core;
  rooms: Rooms;
  env: NodeJS.ProcessEnv;
  paths: Paths;
  version: string;
  settings: LiveConfig;
  token: string;
  host: string;
  port: number;
  telegram: Telegram;
  cluster: ClusterSwitch;
  status: () => Status;
  stopAll: () => Stopped;
}

/** The HTTP API on top of the rooms. */
export async function buildHttp(deps: ApiDeps): Promise<Http> {
  const { core, rooms, env, paths, version, settings, token, host, port, telegram, cluster, status, stopAll } = deps;
  const { createHttp } = await import("../channels/http/server.ts");
  const { engine, usage, hub, events, gate, approvals, budgets, log } = core;
  const { messages, contexts, wiki, skills, squads, swarm, plans, inbox, outbox, steering } = rooms;
  return createHttp({
    ...{ version, token, host, port, env, log, settings, configPath: paths.config },
    ...{ engine, emit: hub.emit, hub, events, callsOf: gate.callsOf },
    ...{ inbox, outbox, steering, messages, contexts, approvals, budgets },
    ...{ wiki, skills, squads, swarm, plans, telegram, cluster, status, stopAll },
    searchMessages: createMessageSearch(core.store),
    pageWriters: createPageWriters(core.store),
    pageFolder: join(packageRoot, "dist", "web"),
    isBehindWall: createConnectionJudge(realOf(paths.home)),
    usageBy: createSummaries({ usage, prices: () => settings.current().prices }),
    allowedHosts: () => settings.current().allowedHosts,
    squadProject: (slug) => squads.projectOf(slug),
    checkPipeline: (yaml, projectPath) => checkPipeline(yaml, projectPath, env, paths.home),
    doctor: async (options) => (await import("./doctor.ts")).examine({ paths, env, ...options }),
  });
}

export interface StatusDeps extends Pick<ApiDeps, "core" | "rooms" | "version"> {
  home: string;
  startedAt: Date;
  channels: Status["channels"];
  cluster: Status["cluster"];
}

/** What the daemon is doing. */
export function statusOf({
  core: { engine, retention, approvals },
  rooms: { messages, squads, owed },
  version,
  home,
  startedAt,
  channels,
  cluster,
}: StatusDeps): Status {
  const { queued, running, ...counts } = messages.counts();
  return {
    version,
    pid: process.pid,
    uptime: Math.round((Date.now() - startedAt.getTime()) / 1000),
    home,
    engine: engine.status(),
    queue: { depth: queued + running, waiting: queued, running, owed: owed() },
    counts: {
      ...counts,
      ...squads.counts(),
      approvalsWaiting: approvals.waitingCount(),
      budgetsWaiting: budgetsWaiting(approvals),
    },
    channels,
    cluster,
    retention: retention.status(),
  };
}

/** How many budgets are used up, so that somebody's work waits. */
function budgetsWaiting(approvals: Pick<Approvals, "waiting" | "waitingCount">): number {
  return approvals.waitingCount() === 0 ? 0 : approvals.waiting().filter(({ kind }) => kind === "budget").length;
}

async function checkPipeline(yaml: string, projectPath: string | undefined, env: NodeJS.ProcessEnv, dataFolder: string) {
  const root = projectPath === undefined ? undefined : openProject(projectPath, dataFolder);
  const { agentsDir } = readRunSettings(env);
  const places = { root, agentsDir, shipped: join(packageRoot, "agents"), discreet: true };
  const read = await readPipeline(yaml, { kinds: PHASE_KINDS, places });
  return { problems: "problems" in read ? read.problems : [], notes: read.notes };
}

/** Ends everything that runs and cancels what waits. */
export function stopAllIn({ inbox, squads, swarm, plans }: Rooms): Stopped {
  plans.close();
  return { messages: inbox.stopAll(), tasks: squads.stopAll(), runs: stopRuns(swarm) };
}

/** Cancels every run that is under way and tells how many there were. */
function stopRuns(swarm: Swarm): number {
  const running = swarm.running();
  for (const id of running) swarm.cancel(id);
  return running.length;
}
