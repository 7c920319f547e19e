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
import { ensureToken } from "./lib/token.ts";
import { packageVersion } from "./lib/version.ts";
import { createConversations } from "./orchestrator/conversations.ts";
import { createInbox } from "./orchestrator/inbox.ts";
import { NO_SQUADS, selfEditPolicy } from "./orchestrator/system-message.ts";
import type { Origin } from "./protocol/squads.ts";
import { openSkills } from "./skills/open.ts";
import { skillTools } from "./skills/tools.ts";
import { createSquads } from "./squads/squads.ts";
import { squadTools, tellSquads } from "./squads/tools.ts";
import { createConversationLog } from "./store/conversation-log.ts";
import { createEventLog } from "./store/events.ts";
import { createHub } from "./store/hub.ts";
import { takeLock } from "./store/lock.ts";
import { createMessages } from "./store/messages.ts";
import { openStore } from "./store/open.ts";
import { createSessionRows } from "./store/sessions.ts";
import { createState } from "./store/state.ts";
import { createUsageLog } from "./store/usage.ts";
import { checkUpdate } from "./tools/check-update.ts";
import { configUpdate } from "./tools/config-update.ts";
import { cleanEnvironment } from "./tools/environment.ts";
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
    sandbox,
    machine,
    async close() {
      await engine.stop();
      hub.close();
      store.close();
    },
  };
}
export type Core = Awaited<ReturnType<typeof createCore>>;

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
  const { store, events, hub, usage, engine, gate, sandbox, machine, log, redactor } = core;
  const { emit } = hub;
  const state = createState(store);
  const messages = createMessages(store, usage);
  const sessions = createSessionRows(store);
  const talk = createConversationLog(store);

  const wiki = openWiki({ root: paths.wiki, emit, log });
  const skills = openSkills({ root: paths.skills, emit, log, registry: () => settings.current().skillsRegistry });
  const shared = ["wiki_read", "wiki_write", "wiki_search", "wiki_list"];
  const squads = createSquads({
    store,
    engine,
    gate,
    tools: [machine.shell, machine.files, ...wikiTools(wiki).filter(({ name }) => shared.includes(name))],
    wrap: sandbox.wrap,
    env: () => cleanEnvironment(env, redactor),
    redactor,
    config: settings.current,
    emit,
    log,
    deliver: ({ task, text, origin, key }) =>
      inbox.submit({
        text,
        conversation: origin.conversation,
        source: { channel: "background", about: task.id },
        idempotencyKey: key,
      }),
  });
  /** Who a call of the orchestrator's is made for: a result that comes back is still for who asked first. */
  const originOf = (messageId: string): Origin => {
    const message = messages.find(messageId);
    if (!message) return { conversation: "main", source: { channel: "api" } };
    const { conversation, source } = message;
    const earlier = source.channel === "background" ? squads.originOf(source.about) : undefined;
    return { conversation, source: earlier?.source ?? source, messageId };
  };
  const onConfig = (config: Config) => {
    settings.replace(config);
    emit({ type: "config.changed", data: {} });
  };
  const tools: Tool[] = [
    ...wikiTools(wiki),
    machine.shell,
    webFetch({ allow: () => settings.current().webFetchAllow }),
    machine.files,
    github({ redactor }),
    ...skillTools(skills),
    ...squadTools(squads, originOf),
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
      { title: "Squads", text: () => tellSquads(squads) || NO_SQUADS },
      { title: "Your own code", text: () => selfEditPolicy(settings.current().selfEditEnabled) },
    ],
    skills: skills.directories,
    workingDirectory,
    sessions,
    state,
    talk,
    log,
  });
  const routed = (id: string) => ({ tools: gate.callsOf(id).map((call) => call.tool), tasks: squads.tasksOf(id), runs: [] });
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
  const http = createHttp({
    version,
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
    squads,
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
        counts: { ...counts, ...squads.counts() },
      };
    },
    doctor: () => examine({ paths, env }),
    stopAll: () => ({ messages: inbox.stopAll(), tasks: squads.stopAll(), runs: 0 }),
  });

  const stop = async () => {
    rmSync(paths.daemon, { force: true });
    await http.close();
    await Promise.all([inbox.close(), squads.close()]);
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
  squads.start();
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
