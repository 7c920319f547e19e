import type { ResumeSessionConfig } from "@github/copilot-sdk";
import type { Config } from "../lib/config.ts";
import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { createTurnTaking } from "../lib/turn-taking.ts";
import { aboutModels } from "./about-models.ts";
import { createAttempt } from "./attempt.ts";
import { createExplainer } from "./explain.ts";
import { createGenerations } from "./generations.ts";
import { createGitHubAccess } from "./github-access.ts";
import type { Memo } from "./knowledge.ts";
import type { Choice } from "./ladder.ts";
import { createModelDoor } from "./model-door.ts";
import { createModelList } from "./model-list.ts";
import type { Engine, EngineState, EngineStatus, Session, SessionSpec } from "./port.ts";
import { createPreparations } from "./preparations.ts";
import type { Model } from "./rehearsal/wire.ts";
import { createRuntime } from "./runtime.ts";
import { runtimeEnvironment } from "./runtime-environment.ts";
import { findRuntime } from "./runtime-path.ts";
import { createSessions } from "./sessions.ts";
import { isTested } from "./tested-runtimes.ts";
import { createTurns } from "./turns.ts";

export interface EngineDeps {
  /** The runtime's home. */
  folder: string;
  config: () => Config;
  env: NodeJS.ProcessEnv;
  choice: Choice;
  /** Plays the model when the choice is the rehearsal model. */
  rehearsal: Model;
  log: Log;
  /** Takes secrets out of what a provider says of a failure: some repeat the key they were given. */
  clean?: (text: string) => string;
  /** Keeps what a provider's refusals taught. */
  memo?: Memo;
  onState?: (state: EngineState) => void;
  healthEveryMs?: number;
}

/** Placeholders: the runtime insists on an address and a key, and the door uses the real ones. */
const BEHIND_THE_DOOR = { baseUrl: "http://model.invalid/v1", apiKey: "none" };
/** High enough that the runtime never shortens a conversation itself: the door keeps every request within the window. */
const NO_LIMIT = 1_000_000_000;

/** The Copilot runtime, supervised, with turns that survive its death. */
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
  const door = createModelDoor({ choice, list, memo, log });
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
    explainer,
    modelOf,
    opening: github.opening,
  });
  const run = createTurns({
    folder,
    attempt,
    sessions,
    generations,
    door,
    modelOf,
    troubled: explainer.troubled,
    clean,
    log,
  });
  // One thing at a time for each session.
  const inTurn = createTurnTaking();
  const preparations = createPreparations((spec) => inTurn(spec.id, () => prepare(spec)));

  async function prepare(spec: SessionSpec): Promise<void> {
    try {
      await list.ready(spec.model);
      await sessions.acquire(spec, { owner: "", attempt: 0, settled: () => 0 });
      sessions.release(spec.id);
    } catch (error) {
      log.debug("a session could not be prepared; its first turn will try again", { session: spec.id, error: messageOf(error) });
    }
  }

  return {
    async start() {
      await runtime.start();
      // GitHub hears nothing before somebody wants something of it.
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
      notes: [...(choice.notes ?? []), ...list.choice().notes],
      runtime: { version: runtime.version(), tested: isTested(runtime.version()) },
      liveSessions: sessions.liveCount(),
    }),
    session: (spec): Session => ({
      id: spec.id,
      run(request) {
        preparations.leave(spec.id);
        preparations.stir();
        return inTurn(spec.id, () => run(spec, request)).finally(preparations.stir);
      },
      prepare: () => preparations.add(spec),
    }),
    async deleteSession(id) {
      preparations.leave(id);
      door.handover(generations.current(id).session);
      await sessions.remove(id);
    },
    ...aboutModels({ choice, list, door, modelOf }),
  };
}

/** How a session reaches its model: as somebody at GitHub, or through the door. */
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
