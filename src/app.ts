import { rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { isLoopbackName } from "./channels/http/guard.ts";
import { createHttp } from "./channels/http/server.ts";
import { examine } from "./doctor.ts";
import { createEngine } from "./engine/engine.ts";
import { type Choice, chooseEngine } from "./engine/ladder.ts";
import { createImproviser, loadRules } from "./engine/rehearsal/improvise.ts";
import { writeFileAtomic } from "./lib/atomic.ts";
import type { Config } from "./lib/config.ts";
import { readDaemonFile } from "./lib/daemon-file.ts";
import { codeOf, UserError, usageError } from "./lib/errors.ts";
import { createLog } from "./lib/log.ts";
import { ensureHome, type Paths, packageRoot, pathsOf } from "./lib/paths.ts";
import { createRedactor } from "./lib/redact.ts";
import { createSettings, type Settings } from "./lib/settings.ts";
import { ensureToken, readToken } from "./lib/token.ts";
import { packageVersion } from "./lib/version.ts";
import { createConversations } from "./orchestrator/conversations.ts";
import { createInbox } from "./orchestrator/inbox.ts";
import { createStartedRuns } from "./orchestrator/started-runs.ts";
import { selfEditPolicy } from "./orchestrator/system-message.ts";
import { openSkills } from "./skills/open.ts";
import { skillTools } from "./skills/tools.ts";
import { analyzeProject, findChecks } from "./squads/analyze.ts";
import { createConversationLog } from "./store/conversation-log.ts";
import { createEventLog } from "./store/events.ts";
import { createHub } from "./store/hub.ts";
import { takeLock } from "./store/lock.ts";
import { createMessages } from "./store/messages.ts";
import { openStore } from "./store/open.ts";
import { createSessionRows } from "./store/sessions.ts";
import { createState } from "./store/state.ts";
import { createUsageLog } from "./store/usage.ts";
import { readPipeline } from "./swarm/file.ts";
import { createSwarm, type Swarm } from "./swarm/run.ts";
import { describeRun, swarmTools } from "./swarm/tools.ts";
import { checkUpdate } from "./tools/check-update.ts";
import { configUpdate } from "./tools/config-update.ts";
import { fileOps } from "./tools/file-ops.ts";
import { createGate } from "./tools/gate.ts";
import { github } from "./tools/github.ts";
import { createPathGuard } from "./tools/guard.ts";
import { createPolicy } from "./tools/policy.ts";
import { createSandbox } from "./tools/sandbox.ts";
import { shell } from "./tools/shell.ts";
import type { Tool } from "./tools/tool.ts";
import { webFetch } from "./tools/web-fetch.ts";
import { wikiTools } from "./wiki/tools.ts";
import { openWiki } from "./wiki/wiki.ts";

export interface CoreParts {
  env: NodeJS.ProcessEnv;
  paths: Paths;
  settings: Settings;
  token: string | undefined;
  /** Told each line of the log, for somebody who watches. */
  echo?: (line: string) => void;
}

/** What the daemon and `swarm` share: the store, the events, the engine, the gate and the tools of the machine. */
export async function createCore({ env, paths, settings, token, echo }: CoreParts) {
  const config = settings.current();
  const redactor = createRedactor(secretsOf(config, env, token));
  const log = createLog({ folder: paths.logs, level: config.logLevel, redactor, ...(echo && { echo }) });
  const store = openStore(paths.database);
  const events = createEventLog(store);
  const hub = createHub({ events, log });
  const usage = createUsageLog(store);
  const choice = await chooseEngine(config, env);
  const engine = await createEngine({
    folder: paths.sessions,
    config: settings.current,
    env,
    choice,
    rehearsal: createImproviser(loadRules(paths.home)),
    log,
    onState: (state) => hub.emit({ type: "engine.changed", data: { kind: choice.kind, state } }),
  });
  const guard = createPathGuard({ paths, packageRoot, selfEdit: () => settings.current().selfEditEnabled });
  const sandbox = createSandbox({ home: paths.home, guard });
  const gate = createGate({ store, redactor, log, policy: createPolicy({ guard, keep: [paths.home] }) });
  const machine = {
    shell: shell({ sandbox, redactor, env }),
    files: fileOps({ guard, write: true }),
    filesToRead: fileOps({ guard, write: false }),
  };
  return {
    redactor,
    log,
    store,
    events,
    hub,
    usage,
    choice,
    engine,
    gate,
    machine,
    async close() {
      await engine.stop();
      hub.close();
      store.close();
    },
  };
}
export type Core = Awaited<ReturnType<typeof createCore>>;

/** The pipeline's room on top of a core. */
function createSwarmOn(
  { store, engine, hub, gate, machine, log, usage }: Core,
  paths: Paths,
  env: NodeJS.ProcessEnv,
  onSay?: (agent: string, text: string) => void,
): Swarm {
  const tools = { shell: machine.shell, file_ops: machine.files, file_ops_read: machine.filesToRead };
  return createSwarm({
    store,
    engine,
    emit: hub.emit,
    bind: (names, scope) =>
      gate.bind(
        names.map((name) => tools[name]),
        scope,
      ),
    findChecks: async (folder) => findChecks(await analyzeProject(folder)),
    runsFolder: paths.runs,
    log,
    env,
    recordUsage: usage.record,
    ...(onSay && { onSay: ({ agent, text }) => onSay(agent, text) }),
  });
}

/** The pipeline in a process of its own. */
export async function openSwarm({
  env,
  needsEngine,
  onSay,
}: {
  env: NodeJS.ProcessEnv;
  needsEngine: boolean;
  onSay?: (agent: string, text: string) => void;
}) {
  const paths = pathsOf(env);
  const settings = createSettings(paths.config);
  ensureHome(paths);
  const core = await createCore({ env, paths, settings, token: env.IO_TOKEN || readToken(paths.token) });
  const swarm = createSwarmOn(core, paths, env, onSay);
  try {
    if (needsEngine) await core.engine.start();
  } catch (error) {
    await core.close();
    throw error;
  }
  return {
    swarm,
    hub: core.hub,
    choice: core.choice,
    async close() {
      await swarm.close();
      await core.close();
    },
  };
}

export interface DaemonParts {
  env: NodeJS.ProcessEnv;
  selfEdit?: boolean;
  echo?: (line: string) => void;
}

/** A daemon that serves. */
export interface Daemon {
  url: string;
  choice: Choice;
  paths: Paths;
  /** Resolves when everything is put away; what was under way is finished by the next life. */
  stop(): Promise<void>;
}

/** Builds everything, top to bottom, and starts it. */
export async function startDaemon({ env, selfEdit = false, echo }: DaemonParts): Promise<Daemon> {
  const startedAt = new Date();
  const version = packageVersion();
  const paths = pathsOf(env);
  const settings = createSettings(paths.config, selfEdit ? { selfEditEnabled: true } : {});
  const { host, port } = addressOf(settings.current(), env);
  ensureHome(paths);
  const lock = takeLock(join(paths.home, "daemon.lock"));
  if (!lock) {
    const other = readDaemonFile(paths.daemon);
    throw new UserError(
      `A daemon already runs on ${paths.home}${other ? ` (pid ${other.pid}, port ${other.port})` : ""}. Stop it with "io stop", or set IO_HOME to another folder.`,
    );
  }
  const token = env.IO_TOKEN || ensureToken(paths.token);
  const core = await createCore({ env, paths, settings, token, ...(echo && { echo }) });
  const { store, events, hub, usage, engine, gate, machine, log, redactor } = core;
  const { emit } = hub;
  const state = createState(store);
  const messages = createMessages(store, usage);
  const sessions = createSessionRows(store);
  const talk = createConversationLog(store);

  const wiki = openWiki({ root: paths.wiki, emit, log });
  const skills = openSkills({ root: paths.skills, emit, log, registry: () => settings.current().skillsRegistry });
  const onConfig = (config: Config) => {
    settings.replace(config);
    emit({ type: "config.changed", data: {} });
  };
  const swarm = createSwarmOn(core, paths, env);
  const startedRuns = createStartedRuns(state);
  const tools: Tool[] = [
    ...wikiTools(wiki),
    ...swarmTools({
      swarm,
      env,
      squad: () => undefined,
      conversationOf: (owner) => messages.find(owner)?.conversation,
      onStarted: startedRuns.add,
    }),
    machine.shell,
    webFetch({ allow: () => settings.current().webFetchAllow }),
    machine.files,
    github({ redactor }),
    ...skillTools(skills),
    configUpdate({ configPath: paths.config, onChange: onConfig }),
    checkUpdate({ version, registry: () => settings.current().updateRegistry, redactor }),
  ];
  const workingDirectory = env.HOME || homedir();
  const conversations = createConversations({
    engine,
    version,
    tools: gate.bind(tools, { cwd: workingDirectory, actor: "orchestrator" }),
    sections: [
      {
        title: "What the wiki holds (most used and newest first; read a page before you rely on it)",
        text: () => wiki.summary(),
      },
      { title: "Your own code", text: () => selfEditPolicy(settings.current().selfEditEnabled) },
    ],
    skills: skills.directories,
    workingDirectory,
    sessions,
    state,
    talk,
    log,
  });
  const routed = (id: string) => ({ tools: gate.callsOf(id).map((call) => call.tool), tasks: [], runs: startedRuns.of(id) });
  const inbox = createInbox({
    store,
    messages,
    sessions,
    usage,
    talk,
    conversations,
    config: settings.current,
    emit,
    log,
    routed,
  });
  // A run that a conversation asked for is told to that conversation when it ends, and taken up again after a restart.
  hub.subscribe(({ type, data }) => {
    const run = type === "run.finished" ? swarm.show(String(data.runId)) : undefined;
    if (!run?.conversation) return;
    inbox.submit({
      text: `A swarm run has ended.\n${describeRun(run)}`,
      conversation: run.conversation,
      source: { channel: "background", about: run.id },
      idempotencyKey: `run:${run.id}:${run.finishedAt}`,
    });
  });
  const checkPipeline = (yaml: string) => {
    const read = readPipeline(yaml, { root: paths.runs, agentsDir: ".github/agents", shipped: join(packageRoot, "agents") });
    return "problems" in read ? read.problems : [];
  };
  const http = createHttp({
    version,
    swarm,
    env,
    squadProject: () => undefined,
    checkPipeline,
    token,
    host,
    allowedHosts: () => settings.current().allowedHosts,
    configPath: paths.config,
    settings,
    engine,
    usage,
    emit,
    inbox,
    messages,
    hub,
    events,
    wiki,
    skills,
    log,
    status: () => {
      const { queued, running, ...counts } = messages.counts();
      const uptimeSeconds = Math.round((Date.now() - startedAt.getTime()) / 1000);
      return {
        version,
        pid: process.pid,
        uptimeSeconds,
        home: paths.home,
        engine: engine.status(),
        queue: { waiting: queued, running },
        counts,
      };
    },
    doctor: () => examine({ paths, env }),
    stopAll: () => ({ messages: inbox.stopAll(), tasks: 0, runs: stopRuns(swarm) }),
  });

  const stop = async () => {
    rmSync(paths.daemon, { force: true });
    await http.close();
    await swarm.close();
    await inbox.close();
    await wiki.close();
    await core.close();
    lock.release();
  };
  const starting = engine.start();
  let bound: number;
  try {
    bound = await http.listen(port);
    await starting;
  } catch (error) {
    await starting.catch(() => undefined);
    await stop();
    throw codeOf(error) === "EADDRINUSE"
      ? new UserError(
          `Port ${port} on ${host} is taken by another program. Set IO_PORT or "port" in config.json to another one (0 takes any that is free).`,
        )
      : error;
  }
  inbox.start();
  for (const { id, status, conversation } of swarm.list({ limit: 200 })) {
    if (status !== "interrupted" || conversation === null) continue;
    try {
      swarm.resume(id);
    } catch (error) {
      log.warn("a run could not be taken up again", { run: id, error });
    }
  }
  writeFileAtomic(
    paths.daemon,
    `${JSON.stringify({ pid: process.pid, host, port: bound, version, startedAt: startedAt.toISOString() })}\n`,
  );
  log.info("IO serves", { host, port: bound, engine: core.choice.kind, model: core.choice.model });
  return { url: `http://${host.includes(":") ? `[${host}]` : host}:${bound}`, choice: core.choice, paths, stop };
}

function addressOf(config: Config, env: NodeJS.ProcessEnv): { host: string; port: number } {
  const host = env.IO_HOST || config.host;
  const port = env.IO_PORT ? Number(env.IO_PORT) : config.port;
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw usageError(`IO_PORT: "${env.IO_PORT}" is not a port. Use a whole number from 0 to 65535.`);
  if (!isLoopbackName(host) && !config.allowRemote) {
    throw usageError(
      `The host ${host} can be reached from other machines. Set "allowRemote": true in config.json if that is what you want; the token is asked for all the same.`,
    );
  }
  return { host, port };
}

function secretsOf(config: Config, env: NodeJS.ProcessEnv, token: string | undefined): (string | undefined)[] {
  const names = [
    "COPILOT_PROVIDER_API_KEY",
    "COPILOT_PROVIDER_BEARER_TOKEN",
    "COPILOT_GITHUB_TOKEN",
    "GH_TOKEN",
    "GITHUB_TOKEN",
    "TELEGRAM_BOT_TOKEN",
  ];
  const keyName = config.provider?.apiKeyEnv;
  return [
    token,
    config.telegramBotToken,
    config.provider?.apiKey,
    keyName ? env[keyName] : undefined,
    ...names.map((name) => env[name]),
  ];
}

/** Cancels every run that is under way and tells how many there were. */
function stopRuns(swarm: Swarm): number {
  const running = swarm.list({ limit: 200 }).filter(({ status }) => status === "running");
  for (const { id } of running) swarm.cancel(id);
  return running.length;
}
