import type { ResumeSessionConfig } from "@github/copilot-sdk";
import type { Config } from "../home/config.ts";
import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { createTurnTaking } from "../lib/turn-taking.ts";
import type { TurnRequest } from "../protocol/turns.ts";
import { aboutModels } from "./models/about.ts";
import { createExplainer } from "./models/explain.ts";
import { createModelGateway } from "./models/gateway.ts";
import { createGitHubAccess } from "./models/github-access.ts";
import type { Memo } from "./models/knowledge.ts";
import type { Choice } from "./models/ladder.ts";
import { createModelList } from "./models/list.ts";
import type { Engine, EngineState, EngineStatus, Session, SessionSpec } from "./port.ts";
import type { Model } from "./rehearsal/wire.ts";
import { runtimeEnvironment } from "./runtime/environment.ts";
import { findRuntime } from "./runtime/path.ts";
import { createRuntime } from "./runtime/runtime.ts";
import { isTested } from "./runtime/tested-versions.ts";
import { createAttempt } from "./sessions/attempt.ts";
import { createGenerations } from "./sessions/generations.ts";
import { createPictureShelf } from "./sessions/pictures.ts";
import { createPreparations } from "./sessions/preparations.ts";
import { createSessions } from "./sessions/sessions.ts";
import { createTurns } from "./sessions/turns.ts";

export interface EngineDeps {
  /** The runtime's home. */
  folder: string;
  config: () => Config;
  env: NodeJS.ProcessEnv;
  choice: Choice;
  /** Plays the model when the rehearsal model was chosen. */
  rehearsal: Model;
  log: Log;
  /** Redacts a provider's error, since some repeat the key they were given. */
  clean?: (text: string) => string;
  /** Remembers across restarts what a provider's refusals taught. */
  memo?: Memo;
  onState?: (state: EngineState) => void;
  healthEveryMs?: number;
  quotaMs?: number;
}

/** Placeholders: the runtime requires an address and a key, and the model proxy uses the real ones. */
const BEHIND_THE_DOOR = { baseUrl: "http://model.invalid/v1", apiKey: "none" };
/** High enough that the runtime never shortens a conversation; the model proxy keeps requests within the window. */
const NO_LIMIT = 1_000_000_000;

/** The supervised Copilot runtime, with turns that survive its death. */
export async function createEngine({
  folder,
  config,
  env,
  choice,
  rehearsal,
  log,
  clean = (text) => text,
  memo = new Map<string, string>(),
  onState,
  healthEveryMs,
  quotaMs,
}: EngineDeps): Promise<Engine> {
  const { login } = choice;
  const generations = createGenerations(folder);
  const list = createModelList({
    choice,
    config,
    env,
    rehearsal,
    log,
    listOfGitHub: () => github.models(),
    lifeOf: () => runtime.life().catch(() => undefined),
  });
  const shelf = createPictureShelf(folder);
  const door = createModelGateway({ choice, list, pictureOf: shelf.find, memo, log });
  const runtime = createRuntime({
    folder,
    path: await findRuntime(env),
    env: runtimeEnvironment(env, folder, login?.host),
    client: { requestHandler: door.handler, useLoggedInUser: false },
    log,
    maxMb: () => config().runtimeMaxMb,
    ...(onState && { onState }),
    ...(healthEveryMs !== undefined && { healthEveryMs }),
  });
  const explainer = createExplainer(choice);
  const github = createGitHubAccess({ runtime, login, troubled: explainer.troubled });
  const modelOf = (wanted: string | undefined) => wanted ?? list.choice().model;

  const sessions = createSessions({
    folder,
    runtime,
    generations,
    shelf,
    log,
    maxLive: () => config().maxLiveSessions,
    clean,
    windowOf: (wanted) => door.window(modelOf(wanted)),
    modelConfig: (wanted) => ({ model: modelOf(wanted), ...accessOf(choice) }),
  });
  const attempt = createAttempt({
    runtime,
    sessions,
    generations,
    list,
    door,
    shelf,
    explainer,
    modelOf,
    opening: github.opening,
  });
  const run = createTurns({
    ...{ folder, attempt, sessions, generations, door, clean, log, quotaMs },
    troubled: explainer.troubled,
  });
  // One job at a time per session.
  const inTurn = createTurnTaking();
  const preparations = createPreparations((spec) => inTurn(spec.id, () => prepare(spec)));

  async function prepare(spec: SessionSpec): Promise<void> {
    try {
      await list.ready(spec.model);
      await sessions.acquire(spec, { owner: "", attempt: 0, settled: () => ({ beforeTurn: 0, total: 0 }) });
      sessions.release(spec.id);
    } catch (error) {
      log.debug("a session could not be prepared; its first turn will try again", { session: spec.id, error: messageOf(error) });
    }
  }

  return {
    async start() {
      await runtime.start();
      // Contact GitHub only when it is needed.
      if (!login) void list.ready();
    },
    stop() {
      preparations.leaveAll();
      return runtime.stop();
    },
    status: (): EngineStatus => ({
      kind: choice.kind,
      state: runtime.state(),
      model: list.choice().model,
      why: choice.why,
      notes: [...(choice.notes ?? []), ...list.choice().notes],
      runtime: { version: runtime.version(), tested: isTested(runtime.version()) },
      liveSessions: sessions.liveCount(),
    }),
    session: (spec): Session => ({
      id: spec.id,
      run(request) {
        preparations.leave(spec.id);
        preparations.stir();
        return inTurn(spec.id, () => run(spec, request).finally(() => endTurn(spec, request))).finally(preparations.stir);
      },
      prepare: () => preparations.add(spec),
    }),
    deleteSession(id) {
      preparations.leave(id);
      // Wait for a running preparation, which would write the session again after its deletion.
      return inTurn(id, () => {
        door.handover(generations.current(id).session);
        return sessions.remove(id);
      });
    },
    ...aboutModels({ choice, list, door, modelOf }),
  };
}

/** How a session reaches its model: as a GitHub user, or through the model proxy. */
function accessOf({ login, provider }: Choice): Pick<ResumeSessionConfig, "gitHubToken" | "provider"> {
  if (login) return { gitHubToken: login.token };
  return {
    provider: {
      ...BEHIND_THE_DOOR,
      type: provider?.type === "anthropic" ? "anthropic" : "openai",
      wireApi: provider?.wireApi ?? "completions",
      maxPromptTokens: NO_LIMIT,
    },
  };
}

/** Ends what the turn's tool calls left running, before anybody evaluates their effects. */
async function endTurn({ tools }: SessionSpec, { owner }: TurnRequest): Promise<void> {
  await Promise.all(tools.map((tool) => tool.turnEnded?.(owner)));
}
