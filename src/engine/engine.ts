import type { ModelInfo } from "@github/copilot-sdk";
import type { Config } from "../lib/config.ts";
import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import type { TurnRequest, TurnResult } from "../protocol/turns.ts";
import { noUsage } from "../protocol/usage.ts";
import { type CallFailure, classify, type TurnError, turnError } from "./failures.ts";
import { explainGitHub } from "./github-failures.ts";
import { Late, listCopilotModels, within } from "./github-models.ts";
import type { Choice } from "./ladder.ts";
import { createModelChoice, listProviderModels, type ModelChoice, type ModelName } from "./models.ts";
import type { Engine, EngineState, EngineStatus, Session, SessionSpec } from "./port.ts";
import { planRecovery, type RecoveryPlan, sessionLog } from "./recover.ts";
import { RehearsalHandler } from "./rehearsal/handler.ts";
import type { Model } from "./rehearsal/wire.ts";
import { createRuntime, type Life } from "./runtime.ts";
import { findRuntime } from "./runtime-path.ts";
import { createSessions } from "./sessions.ts";
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
const OPEN_MS = 25_000;
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
  const { login } = choice;
  const explain = (failure: CallFailure): TurnError => (login ? explainGitHub(failure, login) : classify(failure));
  const runtime = createRuntime({
    folder,
    path: await findRuntime(env),
    env: runtimeEnvironment(env, folder, login?.host),
    client: {
      ...(choice.kind === "rehearsal" && { requestHandler: new RehearsalHandler(rehearsal) }),
      useLoggedInUser: false,
      ...(!login && { onListModels: async () => (await listProviderModels(choice)).map(asModelInfo) }),
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
  let listed: Promise<TurnError | undefined> | undefined;
  let listedIn: Life | undefined;
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
      ...(login
        ? { gitHubToken: login.token }
        : { provider: choice.provider ?? { type: "openai", baseUrl: NO_ENDPOINT, apiKey: "none" } }),
    }),
  });

  /** A question to GitHub that hangs would hold up every later one of the same runtime for minutes. */
  async function beginAnew(): Promise<void> {
    try {
      await runtime.replace(await runtime.life());
    } catch (error) {
      log.warn("the agents' runtime could not begin anew", { error: messageOf(error) });
    }
  }

  async function list(): Promise<TurnError | undefined> {
    try {
      const { client } = await runtime.life();
      available = login
        ? await listCopilotModels(client, login.token)
        : (await client.listModels()).map(({ id, name }) => ({ id, name }));
      for (const note of choose().notes) log.warn(note);
      return undefined;
    } catch (error) {
      if (error instanceof Late) await beginAnew();
      const failure = explain({ message: messageOf(error) });
      log.warn("the models could not be listed", { error: clean(failure.message) });
      return login && failure;
    }
  }

  /** Which models there are, asked for when it is first needed. GitHub is asked in each life of the runtime, and again when it gave none: why it did is told. */
  async function known(): Promise<TurnError | undefined> {
    const life = login && (await runtime.life().catch(() => undefined));
    if (life !== listedIn) listed = undefined;
    listedIn = life;
    listed ??= list().then((failure) => {
      if (failure) listed = undefined;
      return failure;
    });
    return listed;
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
    const shut = await known();
    if (shut) return { outcome: "failed", text: "", error: shut, usage: noUsage(), tools: [], served: [] };
    const turn = { owner: request.owner, attempt: number, settled: (callId: string) => settled.get(callId) ?? 0 };
    const opening = sessions.acquire(spec, turn, { continuePendingWork: recovery.kind === "answer calls" });
    const { sdk, life } = await (login ? within(OPEN_MS, opening) : opening);
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
      return await followTurn({ sdk, died: life.died, request, begin, explain });
    } finally {
      life.turns -= 1;
      sessions.release(spec.id);
      runtime.released(life);
    }
  }

  async function run(spec: SessionSpec, request: TurnRequest): Promise<TurnResult> {
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
        if (error instanceof Late) await beginAnew();
        last = {
          outcome: "failed",
          text: "",
          error: explain({ message: messageOf(error) }),
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
      await known();
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
      // GitHub hears nothing before somebody wants something of it.
      if (!login) void known();
    },
    stop: () => runtime.stop(),
    status: (): EngineStatus => ({
      kind: choice.kind,
      state: runtime.state(),
      model: models().model,
      notes: [...(choice.notes ?? []), ...models().notes],
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
      await known();
      return choice.kind === "rehearsal" ? { model: name, standsIn: false } : models().serving(name);
    },
    async models() {
      await known();
      return available.length > 0 ? available : [{ id: models().model, name: models().model }];
    },
  };
}

/** The runtime gets what a program needs and no secret but its own. */
function runtimeEnvironment(env: NodeJS.ProcessEnv, folder: string, gitHubHost?: string): Record<string, string | undefined> {
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
    "COPILOT_DEBUG_GITHUB_API_URL",
  ];
  const kept = Object.fromEntries(names.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])));
  // Offline for GitHub Copilot too: a session with a token of its own is served all the same, and nothing else is sent.
  return { ...kept, COPILOT_HOME: folder, COPILOT_OFFLINE: "true", ...(gitHubHost && { COPILOT_GH_HOST: gitHubHost }) };
}

function asModelInfo({ id, name }: ModelName): ModelInfo {
  return {
    id,
    name,
    capabilities: { supports: { vision: false, reasoningEffort: false }, limits: { max_context_window_tokens: 128_000 } },
  };
}
