import { rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { isLoopbackName } from "./channels/http/guard.ts";
import { createEngine } from "./engine/engine.ts";
import { type Choice, chooseEngine } from "./engine/ladder.ts";
import type { Model } from "./engine/rehearsal/wire.ts";
import { writeFileAtomic } from "./lib/atomic.ts";
import { type Config, loadConfig } from "./lib/config.ts";
import { readDaemonFile } from "./lib/daemon-file.ts";
import { codeOf, UserError, usageError } from "./lib/errors.ts";
import { createLog } from "./lib/log.ts";
import { ensureHome, type Paths, packageRoot, pathsOf } from "./lib/paths.ts";
import { createRedactor } from "./lib/redact.ts";
import { ensureToken } from "./lib/token.ts";
import { packageVersion } from "./lib/version.ts";
import { createConversations } from "./orchestrator/conversations.ts";
import { createInbox } from "./orchestrator/inbox.ts";
import { createConversationLog } from "./store/conversation-log.ts";
import { createEventLog } from "./store/events.ts";
import { createHub } from "./store/hub.ts";
import { takeLock } from "./store/lock.ts";
import { createMessages } from "./store/messages.ts";
import { openStore } from "./store/open.ts";
import { createSessionRows } from "./store/sessions.ts";
import { createState } from "./store/state.ts";
import { createUsageLog } from "./store/usage.ts";
import { createGate } from "./tools/gate.ts";
import { createPathGuard } from "./tools/guard.ts";
import { createPolicy } from "./tools/policy.ts";
import type { Tool } from "./tools/tool.ts";

export interface DaemonParts {
  env: NodeJS.ProcessEnv;
  selfEdit?: boolean;
  /** Told each line of the log, for a daemon that somebody watches. */
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
  const loaded = loadConfig(paths.config);
  const config: Config = selfEdit ? { ...loaded, selfEditEnabled: true } : loaded;
  const { host, port } = addressOf(config, env);
  ensureHome(paths);

  const lock = takeLock(join(paths.home, "daemon.lock"));
  if (!lock) {
    const other = readDaemonFile(paths.daemon);
    throw new UserError(
      `A daemon already runs on ${paths.home}${other ? ` (pid ${other.pid}, port ${other.port})` : ""}. Stop it with "io stop", or set IO_HOME to another folder.`,
    );
  }
  const token = env.IO_TOKEN || ensureToken(paths.token);
  const redactor = createRedactor(secretsOf(config, env, token));
  const log = createLog({ folder: paths.logs, level: config.logLevel, redactor, ...(echo && { echo }) });
  const store = openStore(paths.database);
  const state = createState(store);
  const usage = createUsageLog(store);
  const messages = createMessages(store, usage);
  const sessions = createSessionRows(store);
  const talk = createConversationLog(store);
  const events = createEventLog(store);
  const hub = createHub({ events, log });

  const choice = await chooseEngine(config, env);
  const engine = await createEngine({
    folder: paths.sessions,
    config: () => config,
    env,
    choice,
    rehearsal: await rehearsalFor(choice, paths.home),
    log,
    onState: (engineState) => hub.emit({ type: "engine.changed", data: { kind: choice.kind, state: engineState } }),
  });
  // The runtime comes up in its own process while the rest is loaded here; whether it did is asked below.
  const starting = engine.start();
  starting.catch(() => undefined);
  const { createHttp } = await import("./channels/http/server.ts");
  const guard = createPathGuard({ paths, packageRoot, selfEdit: () => config.selfEditEnabled });
  const gate = createGate({ store, redactor, log, policy: createPolicy({ guard, keep: [paths.home] }) });
  const tools: Tool[] = [];
  const workingDirectory = env.HOME || homedir();
  const conversations = createConversations({
    engine,
    version,
    tools: gate.bind(tools, { cwd: workingDirectory, actor: "orchestrator" }),
    sections: [],
    workingDirectory,
    sessions,
    state,
    talk,
    log,
  });
  const inbox = createInbox({ store, messages, sessions, usage, talk, conversations, config: () => config, emit: hub.emit, log });
  const http = createHttp({
    version,
    token,
    host,
    allowedHosts: () => config.allowedHosts,
    inbox,
    messages,
    hub,
    events,
    log,
    status: () => {
      const { queued, running, ...counts } = messages.counts();
      return {
        version,
        pid: process.pid,
        uptimeSeconds: Math.round((Date.now() - startedAt.getTime()) / 1000),
        home: paths.home,
        engine: engine.status(),
        queue: { waiting: queued, running },
        counts,
      };
    },
    doctor: async () => (await import("./doctor.ts")).examine({ paths, env }),
    stopAll: () => ({ messages: inbox.stopAll(), tasks: 0, runs: 0 }),
  });

  let bound: number;
  try {
    bound = await http.listen(port);
    await starting;
  } catch (error) {
    await starting.catch(() => undefined);
    await engine.stop();
    hub.close();
    store.close();
    lock.release();
    throw codeOf(error) === "EADDRINUSE"
      ? new UserError(
          `Port ${port} on ${host} is taken by another program. Set IO_PORT or "port" in config.json to another one (0 takes any that is free).`,
        )
      : error;
  }
  inbox.start();
  writeFileAtomic(
    paths.daemon,
    `${JSON.stringify({ pid: process.pid, host, port: bound, version, startedAt: startedAt.toISOString() })}\n`,
  );
  log.info("IO serves", { host, port: bound, engine: choice.kind, model: choice.model });

  return {
    url: `http://${host.includes(":") ? `[${host}]` : host}:${bound}`,
    choice,
    paths,
    async stop() {
      rmSync(paths.daemon, { force: true });
      await http.close();
      await inbox.close();
      await engine.stop();
      hub.close();
      log.info("IO stopped");
      store.close();
      lock.release();
    },
  };
}

/** The improviser and its rules are loaded only where they are to play. */
async function rehearsalFor({ kind }: Choice, home: string): Promise<Model> {
  if (kind !== "rehearsal") return () => ({ status: 503, message: "The rehearsal model does not play here." });
  const { createImproviser, loadRules } = await import("./engine/rehearsal/improvise.ts");
  return createImproviser(loadRules(home));
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

function secretsOf(config: Config, env: NodeJS.ProcessEnv, token: string): (string | undefined)[] {
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
