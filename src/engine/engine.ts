import type { ModelInfo } from "@github/copilot-sdk";
import type { Config } from "../lib/config.ts";
import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import type { TurnRequest, TurnResult } from "../protocol/turns.ts";
import { noUsage } from "../protocol/usage.ts";
import { classify, turnError } from "./failures.ts";
import type { Choice } from "./ladder.ts";
import { createModelChoice, listProviderModels, type ModelChoice, type ModelName } from "./models.ts";
import type { Engine, EngineState, EngineStatus, Session, SessionSpec } from "./port.ts";
import { planRecovery, type RecoveryPlan, sessionLog } from "./recover.ts";
import { RehearsalHandler } from "./rehearsal/handler.ts";
import type { Model } from "./rehearsal/wire.ts";
import { createRuntime } from "./runtime.ts";
import { findRuntime } from "./runtime-path.ts";
import { createSessions } from "./sessions.ts";
import { isTested } from "./tested-runtimes.ts";
import { followTurn } from "./turn.ts";

export interface EngineParts {
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
  onState?: (state: EngineState) => void;
  healthEveryMs?: number;
}

const ATTEMPTS = 3;
const NO_ENDPOINT = "http://rehearsal.invalid/v1";

/** The Copilot runtime, supervised, with turns that survive its death. */
export async function createEngine({
  folder,
  config,
  env,
  choice,
  rehearsal,
  log,
  clean = (text) => text,
  onState,
  healthEveryMs,
}: EngineParts): Promise<Engine> {
  const offline = choice.kind !== "copilot";
  const runtime = createRuntime({
    folder,
    path: await findRuntime(env),
    env: runtimeEnvironment(env, folder, offline),
    client: {
      ...(choice.kind === "rehearsal" && { requestHandler: new RehearsalHandler(rehearsal) }),
      ...(choice.gitHubToken !== undefined && { gitHubToken: choice.gitHubToken }),
      useLoggedInUser: choice.kind === "copilot" && choice.gitHubToken === undefined,
      ...(offline && { onListModels: async () => (await listProviderModels(choice)).map(asModelInfo) }),
    },
    log,
    maxMb: () => config().runtimeMaxMb,
    ...(onState && { onState }),
    ...(healthEveryMs !== undefined && { healthEveryMs }),
  });
  let available: ModelName[] = [];
  const first = config();
  let seen = first;
  let chosen: ModelChoice = createModelChoice(first, choice.model, available);
  let listed: Promise<void> = Promise.resolve();
  const turns = new Map<string, Promise<unknown>>();

  /** Which models serve by the config as it is now; a model that something other than the config named stays. */
  const choose = (): ModelChoice => {
    const now = config();
    const wanted = choice.model === first.defaultModel ? now.defaultModel : choice.model;
    seen = now;
    chosen = createModelChoice(now, wanted, available);
    return chosen;
  };
  const models = (): ModelChoice => (config() === seen ? chosen : choose());

  const sessions = createSessions({
    folder,
    runtime,
    log,
    maxLive: () => config().maxLiveSessions,
    clean,
    modelConfig: (wanted) => ({
      model: wanted ?? models().model,
      ...(offline && { provider: choice.provider ?? { type: "openai", baseUrl: NO_ENDPOINT, apiKey: "none" } }),
    }),
  });

  async function list(): Promise<void> {
    try {
      const life = await runtime.life();
      available = (await life.client.listModels()).map(({ id, name }) => ({ id, name }));
      for (const note of choose().notes) log.warn(note);
    } catch (error) {
      log.warn("the models could not be listed", { error: messageOf(error) });
    }
  }

  /** One try at a turn: a fresh prompt, or going on from where the session stands. */
  async function attempt(
    spec: SessionSpec,
    request: TurnRequest,
    { recovery, settled }: RecoveryPlan,
    number: number,
  ): Promise<TurnResult> {
    if (recovery.kind === "answered")
      return { outcome: "done", text: recovery.text, usage: noUsage(), tools: recovery.tools, served: [] };
    const turn = { owner: request.owner, attempt: number, settled: (callId: string) => settled.get(callId) ?? 0 };
    const { sdk, life } = await sessions.acquire(spec, turn, { continuePendingWork: recovery.kind === "answer calls" });
    life.turns += 1;
    try {
      const flush = () => life.client.rpc.sessions.save({ sessionId: spec.id }).then(() => undefined);
      const begin = async () => {
        switch (recovery.kind) {
          case "send": {
            request.onAccepted?.(await sdk.send({ prompt: request.prompt }));
            return;
          }
          case "truncate":
            await sdk.rpc.history.truncate({ eventId: recovery.eventId });
            await sdk.rpc.sendMessages({ messages: [] });
            return;
          case "continue":
            await sdk.rpc.sendMessages({ messages: [] });
            return;
          case "answer calls":
            await Promise.all(
              recovery.calls.map(async ({ requestId, callId, tool, args }) => {
                const ours = spec.tools.find(({ name }) => name === tool);
                const result = ours
                  ? await ours.call(args, { callId, sessionId: spec.id, ...turn, signal: request.signal, flush })
                  : { ok: false, text: `There is no tool called ${tool} any more.` };
                await sdk.rpc.tools.handlePendingToolCall({
                  requestId,
                  result: { textResultForLlm: result.text, resultType: result.ok ? "success" : "failure" },
                });
              }),
            );
        }
      };
      return await followTurn({ sdk, died: life.died, request, begin });
    } finally {
      life.turns -= 1;
      sessions.release(spec.id);
      runtime.released(life);
    }
  }

  async function run(spec: SessionSpec, request: TurnRequest): Promise<TurnResult> {
    await listed;
    let promptId = request.interrupted?.promptId;
    const heard: TurnRequest = {
      ...request,
      onAccepted: (id) => {
        promptId = id;
        request.onAccepted?.(id);
      },
    };
    let interrupted = request.interrupted !== undefined;
    let last: TurnResult | undefined;
    for (let tried = 0; tried < ATTEMPTS; tried += 1) {
      if (request.signal.aborted)
        return {
          ...(last ?? { text: "", usage: noUsage(), tools: [], served: [] }),
          outcome: "aborted",
          error: turnError("aborted"),
        };
      const plan: RecoveryPlan = interrupted
        ? planRecovery(sessionLog(folder, spec.id), {
            prompt: request.prompt,
            promptId,
            previousPromptId: request.interrupted?.previousPromptId,
          })
        : { recovery: { kind: "send" }, settled: new Map() };
      if (last?.text) request.onEvent?.({ kind: "restarted" });
      try {
        last = await attempt(spec, heard, plan, request.attempt * 10 + tried);
      } catch (error) {
        last = {
          outcome: "failed",
          text: "",
          error: classify({ message: messageOf(error) }),
          usage: noUsage(),
          tools: [],
          served: [],
        };
      }
      const code = last.error?.code;
      if (last.error) last.error.message = clean(last.error.message);
      if (code !== "runtime_died" && code !== "session_gone") return last;
      log.warn("a turn was cut off and is taken up again", { owner: request.owner, why: code, tried: tried + 1 });
      sessions.drop(spec.id);
      interrupted = true;
    }
    return last!;
  }

  async function prepare(spec: SessionSpec): Promise<void> {
    try {
      await listed;
      await sessions.acquire(spec, { owner: "", attempt: 0, settled: () => 0 });
      sessions.release(spec.id);
    } catch (error) {
      log.debug("a session could not be prepared; its first turn will try again", { session: spec.id, error: messageOf(error) });
    }
  }

  /** One thing at a time for each session. */
  function inTurn<T>(id: string, work: () => Promise<T>): Promise<T> {
    const turn = (turns.get(id) ?? Promise.resolve()).then(work);
    turns.set(id, turn);
    return turn.finally(() => {
      if (turns.get(id) === turn) turns.delete(id);
    });
  }

  return {
    async start() {
      await runtime.start();
      listed = list();
    },
    stop: () => runtime.stop(),
    status: (): EngineStatus => ({
      kind: choice.kind,
      state: runtime.state(),
      model: models().model,
      notes: models().notes,
      runtime: { version: runtime.version(), tested: isTested(runtime.version()) },
      liveSessions: sessions.liveCount(),
    }),
    session: (spec): Session => ({
      id: spec.id,
      run: (request) => inTurn(spec.id, () => run(spec, request)),
      prepare: () => inTurn(spec.id, () => prepare(spec)),
    }),
    deleteSession: (id) => sessions.remove(id),
    modelFor: (tier) => models().forTier(tier),
    async serving(name) {
      await listed;
      return choice.kind === "rehearsal" ? { model: name, standsIn: false } : models().serving(name);
    },
    async models() {
      await listed;
      return available.length > 0 ? available : [{ id: models().model, name: models().model }];
    },
  };
}

/** The runtime gets what a program needs and no secret but its own. */
function runtimeEnvironment(env: NodeJS.ProcessEnv, folder: string, offline: boolean): Record<string, string | undefined> {
  const names = [
    "PATH",
    "HOME",
    "TMPDIR",
    "LANG",
    "LC_ALL",
    "TZ",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "SystemRoot",
    "APPDATA",
    "LOCALAPPDATA",
    "USERPROFILE",
  ];
  const kept = Object.fromEntries(names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
  return { ...kept, COPILOT_HOME: folder, ...(offline && { COPILOT_OFFLINE: "true" }) };
}

function asModelInfo({ id, name }: ModelName): ModelInfo {
  return {
    id,
    name,
    capabilities: { supports: { vision: false, reasoningEffort: false }, limits: { max_context_window_tokens: 128_000 } },
  };
}
