import { dirname, join } from "node:path";
import type { Http } from "../channels/http/server.ts";
import type { Telegram } from "../channels/telegram/switch.ts";
import { repositoryAbove } from "../git/repository.ts";
import type { LiveConfig } from "../home/live-config.ts";
import { ownCommands } from "../home/own-commands.ts";
import type { Paths } from "../home/paths.ts";
import { packageRoot } from "../lib/package-root.ts";
import { realOf } from "../lib/real-path.ts";
import { createConnectionJudge } from "../process/wall/connection-judge.ts";
import { createNameFinder } from "../project/find-names.ts";
import type { Status, Stopped } from "../protocol/api.ts";
import type { ModelCall, Spender } from "../protocol/usage.ts";
import { createClientTokens } from "../store/client-tokens.ts";
import { createLastHeard } from "../store/last-heard.ts";
import { createMessageSearch } from "../store/message-search.ts";
import { whenNotHeld } from "../store/open.ts";
import { takeSnapshot } from "../store/snapshot.ts";
import { PHASE_KINDS } from "../swarm/phases/index.ts";
import { readPipeline } from "../swarm/pipeline/file.ts";
import { readRunSettings } from "../swarm/pipeline/settings.ts";
import { openProject } from "../swarm/run/checkout.ts";
import { costOf } from "../tools/budgets/money.ts";
import { createSummaries } from "../tools/budgets/summary.ts";
import { checkAddress } from "./address.ts";
import type { Rooms } from "./build.ts";
import type { ClusterSwitch } from "./cluster.ts";
import type { Core } from "./core.ts";
import { createMcpLoader } from "./mcp.ts";
import { createOpenAiLoader } from "./openai.ts";

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
  stay: () => Status;
  anyPort: boolean;
}

/** How long a request waits for another program that holds the database. */
const REQUEST_WAIT_MS = 5_000;

/** The HTTP API on top of the rooms. */
export async function buildHttp(deps: ApiDeps): Promise<Http> {
  const { core, rooms, env, paths, settings, token, host, port, telegram, cluster, status, stopAll, stay, anyPort } = deps;
  const { createHttp } = await import("../channels/http/server.ts");
  const { engine, usage, hub, events, disk, gate, approvals, budgets, log } = core;
  const {
    messages,
    changes,
    conversations,
    deleteConversation,
    renewConversation,
    contexts,
    wiki,
    skills,
    squads,
    swarm,
    plans,
    words,
    startedRuns,
    inbox,
    outbox,
    steering,
    schedules,
    news,
    pulls,
    watches,
  } = rooms;
  const recordUsage = (spender: Spender, calls: readonly ModelCall[]) => {
    for (const call of calls) usage.record(spender, call);
  };
  return createHttp({
    ...{ token, host, port, env, log, settings, configPath: paths.config },
    ...{ engine, emit: hub.emit, hub, events, disk: disk.info, callsOf: gate.callsOf },
    whenWritable() {
      const end = performance.now() + REQUEST_WAIT_MS;
      return whenNotHeld(
        () => core.store.soft(() => undefined),
        () => performance.now() > end,
      );
    },
    ...{ inbox, outbox, steering, messages, changes, conversations, deleteConversation, contexts, approvals, budgets },
    ...{ renewConversation, todos: core.todos, attachments: core.attachments, background: core.backgroundView },
    ...{
      wiki,
      skills,
      squads,
      swarm,
      plans,
      schedules,
      pulls,
      watches,
      telegram,
      cluster,
      status,
      stopAll,
      stay,
      anyPort,
      words,
    },
    snapshot: (folder, options) => takeSnapshot(paths.database, join(realOf(paths.scratch), folder, "io.db"), options),
    digest: news.digest,
    rules: rooms.rules,
    onCommandRun: startedRuns.addOfCommand,
    cleanChanges: core.undo.clean,
    findNames: createNameFinder(core.git),
    ownCommands: (project) => ownCommands({ home: paths.home, project }),
    searchMessages: createMessageSearch(core.store),
    ...{ pageWriters: rooms.pageWriters, pageReviews: rooms.pageReviews, contradictions: rooms.contradictions },
    pageFolder: join(packageRoot, "dist", "web"),
    descriptionFile: join(packageRoot, "dist", "openapi.json"),
    isBehindWall: createConnectionJudge(realOf(paths.home)),
    usageBy: createSummaries({ usage, prices: () => settings.current().prices }),
    costOfSchedule: (id) => costOf(usage.ofName("schedule", id), settings.current().prices),
    allowedHosts: () => settings.current().allowedHosts,
    webhookSecret: () => settings.current().forge.webhookSecret,
    openaiOrigins: () => settings.current().openaiOrigins,
    clientTokens: createClientTokens(core.store),
    lastHeard: createLastHeard(core.store),
    mcpServers: rooms.mcp,
    editorTexts: rooms.editorTexts,
    knownProjects: () => projectsOf(rooms),
    mcp: createMcpLoader({ version: deps.version, log }),
    openai: createOpenAiLoader({ core, rooms, settings, folder: paths.scratch }),
    checkAddress,
    squadProject: (slug) => squads.projectOf(slug),
    checkPipeline: (yaml, projectPath) => checkPipeline(yaml, projectPath, env, paths.home),
    recordUsage,
    doctor: async (options) => {
      const { examine } = await import("./doctor.ts");
      return examine({ paths, env, servers: () => rooms.mcp.list(projectsOf(rooms)), record: recordUsage, ...options });
    },
  });
}

/** The folders of the squads and of recently used conversations, with the checkouts around them. */
function projectsOf({ squads, conversations }: Rooms): string[] {
  const folders = [
    ...squads.list().map(({ projectPath }) => projectPath),
    ...conversations.list({ limit: 100 }).map(({ folder }) => folder),
  ];
  const known = folders.filter((folder) => folder !== null).slice(0, MOST_PROJECTS);
  const checkouts = known.map(repositoryAbove).filter((marker) => marker !== undefined);
  return [...new Set([...known, ...checkouts.map((marker) => dirname(marker))])];
}
const MOST_PROJECTS = 100;

export interface StatusDeps extends Pick<ApiDeps, "core" | "rooms" | "version"> {
  home: string;
  startedAt: Date;
  endsWhenIdle: boolean;
  channels: Status["channels"];
  cluster: Status["cluster"];
}

/** What the daemon is doing. */
export function statusOf({
  core: { engine, disk, retention, approvals, background, mode },
  rooms: { messages, squads, swarm, owed },
  version,
  home,
  startedAt,
  endsWhenIdle,
  channels,
  cluster,
}: StatusDeps): Status {
  const { queued, running, ...counts } = messages.counts();
  const runs = swarm.running();
  const waiting = approvals.waitingCount();
  return {
    version,
    pid: process.pid,
    uptime: Math.round((Date.now() - startedAt.getTime()) / 1000),
    home,
    endsWhenIdle,
    engine: engine.status(),
    mode: mode(),
    queue: { depth: queued + running, waiting: queued, running, owed: owed() },
    counts: {
      ...counts,
      ...squads.counts(),
      runsRunning: runs.length,
      approvalsWaiting: waiting,
      budgetsWaiting: waiting === 0 ? 0 : approvals.waiting().filter(({ kind }) => kind === "budget").length,
      ...(waiting > 0 && {
        messagesHeld: messages.open().filter(({ waitsFor }) => waitsFor).length,
        tasksHeld: squads.tasks({ status: "running" }).filter(({ waitsFor }) => waitsFor).length,
        runsHeld: runs.filter((id) => swarm.summary(id).waitsFor).length,
      }),
      backgroundRunning: background.running(),
    },
    disk: disk.info(),
    channels,
    cluster,
    retention: retention.status(),
  };
}

async function checkPipeline(yaml: string, projectPath: string | undefined, env: NodeJS.ProcessEnv, dataFolder: string) {
  const root = projectPath === undefined ? undefined : openProject(projectPath, dataFolder);
  const { agentsDir } = readRunSettings(env);
  const places = { root, agentsDir, shipped: join(packageRoot, "agents"), discreet: true };
  const read = await readPipeline(yaml, { kinds: PHASE_KINDS, places });
  return { problems: "problems" in read ? read.problems : [], notes: read.notes };
}

/** Ends everything that runs and cancels what waits. */
export function stopAllIn({ inbox, squads, swarm, plans, background }: Rooms): Stopped {
  plans.close();
  void background.stopAll();
  const failures: unknown[] = [];
  /** What cannot be recorded now does not keep the rest from being stopped. */
  const attempt = <T>(work: () => T): T | undefined => {
    try {
      return work();
    } catch (error) {
      failures.push(error);
      return undefined;
    }
  };
  const runs = swarm.running();
  for (const id of runs) attempt(() => swarm.cancel(id));
  const tasks = attempt(() => squads.stopAll());
  const messages = attempt(() => inbox.stopAll());
  if (failures.length > 0) throw failures[0];
  return { messages: messages ?? 0, tasks: tasks ?? 0, runs: runs.length };
}
