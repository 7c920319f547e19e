import type { Config } from "../lib/config.ts";
import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import type { TurnRequest, TurnResult } from "../protocol/turns.ts";
import { noUsage } from "../protocol/usage.ts";
import { callFailed, type RuntimeTrouble, runtimeFailed, turnError } from "./failures.ts";
import { createGenerations } from "./generations.ts";
import { explainGitHub } from "./github-failures.ts";
import { Late, listCopilotModels, within } from "./github-models.ts";
import type { Memo } from "./knowledge.ts";
import type { Choice } from "./ladder.ts";
import { createModelDoor } from "./model-door.ts";
import { createModelList, ListFailed } from "./model-list.ts";
import type { Engine, EngineState, EngineStatus, Session, SessionSpec } from "./port.ts";
import { planRecovery, type Recovery, type RecoveryPlan, sessionLog } from "./recover.ts";
import type { Model } from "./rehearsal/wire.ts";
import { createRuntime } from "./runtime.ts";
import { findRuntime } from "./runtime-path.ts";
import { createSessions } from "./sessions.ts";
import { isTested } from "./tested-runtimes.ts";
import { followTurn } from "./turn.ts";
import type { Observer } from "./wire/exchange.ts";
import type { WireFailure } from "./wire/failure.ts";

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

const ATTEMPTS = 3;
const OPEN_MS = 25_000;
/** The runtime needs an address and a key to believe in; the door knows the real ones. */
const BEHIND_THE_DOOR = { baseUrl: "http://model.invalid/v1", apiKey: "none" };
/** The runtime's own shortening of a conversation never begins: the door keeps every request within the window. */
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
    listOfGitHub: () => listOfGitHub(),
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
  const troubled = (trouble: RuntimeTrouble) => (login && explainGitHub(trouble, login)) ?? runtimeFailed(trouble);
  /** A question to GitHub that hangs would hold up every later one of the same runtime for minutes. */
  async function inTime<T>(asked: () => Promise<T>): Promise<T> {
    try {
      return await asked();
    } catch (error) {
      if (error instanceof Late) await runtime.replace(await runtime.life());
      throw error;
    }
  }
  const listOfGitHub = () =>
    inTime(async () => listCopilotModels((await runtime.life()).client, login?.token ?? "")).catch((error: unknown) => {
      throw new ListFailed(troubled({ message: messageOf(error) }));
    });
  const turns = new Map<string, Promise<unknown>>();
  const modelOf = (wanted: string | undefined) => wanted ?? list.choice().model;

  const sessions = createSessions({
    folder,
    runtime,
    generations,
    log,
    maxLive: () => config().maxLiveSessions,
    clean,
    windowOf: (wanted) => door.window(modelOf(wanted)),
    modelConfig: (wanted) => ({
      model: modelOf(wanted),
      ...(login
        ? { gitHubToken: login.token }
        : {
            provider: {
              ...BEHIND_THE_DOOR,
              type: choice.provider?.type === "anthropic" ? "anthropic" : "openai",
              wireApi: choice.provider?.wireApi ?? "completions",
              maxPromptTokens: NO_LIMIT,
            },
          }),
    }),
  });

  /** One try at a turn: a fresh prompt, or going on from where the session stands. */
  async function attempt(spec: SessionSpec, request: TurnRequest, plan: RecoveryPlan, number: number): Promise<TurnResult> {
    const { settled } = plan;
    if (plan.recovery.kind === "answered")
      return {
        outcome: "done",
        text: plan.recovery.text,
        usage: noUsage(),
        tools: plan.recovery.tools,
        served: plan.recovery.model ? [plan.recovery.model] : [],
      };
    const shut = await list.ready(spec.model);
    if (shut) return { outcome: "failed", text: "", error: shut, usage: noUsage(), tools: [], served: [] };
    const turn = { owner: request.owner, attempt: number, settled: (callId: string) => settled.get(callId) ?? 0 };
    const planned = generations.current(spec.id).session;
    const opening = () => sessions.acquire(spec, turn, { continuePendingWork: plan.recovery.kind === "answer calls" });
    const { sdk, life, name } = await (login ? inTime(() => within(OPEN_MS, opening())) : opening());
    // A session that had to be begun anew holds nothing of the turn that was planned for the old one.
    const recovery: Recovery = name === planned ? plan.recovery : { kind: "send" };
    life.turns += 1;
    try {
      const flush = () => life.client.rpc.sessions.save({ sessionId: name }).then(() => undefined);
      const begin = async () => {
        switch (recovery.kind) {
          case "send": {
            request.onAccepted?.(await sdk.send({ prompt: request.prompt.toWellFormed() }));
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
      const explain = (failure: WireFailure) =>
        (login && explainGitHub(asTrouble(failure), login)) ??
        callFailed(failure, modelOf(spec.model), choice.names, list.available());
      const watch = (seen: Observer) => door.watch(name, seen);
      return await followTurn({ sdk, onDeath: life.onDeath, request, begin, explain, troubled, watch });
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
    if (!interrupted) renew(spec);
    let last: TurnResult | undefined;
    for (let tried = 0; tried < ATTEMPTS; tried += 1) {
      if (request.signal.aborted)
        return {
          ...(last ?? { text: "", usage: noUsage(), tools: [], served: [] }),
          outcome: "aborted",
          error: turnError("aborted"),
        };
      const plan: RecoveryPlan = interrupted
        ? planRecovery(sessionLog(folder, generations.current(spec.id).session), {
            prompt: request.prompt,
            promptId,
            previousPromptId: request.interrupted?.previousPromptId,
          })
        : { recovery: { kind: "send" }, settled: new Map() };
      if (last?.text) request.onEvent?.({ kind: "restarted" });
      try {
        last = await attempt(spec, heard, plan, request.attempt * 10 + tried);
      } catch (error) {
        const { remedy, ...failed } = troubled({ message: messageOf(error) });
        last = {
          outcome: "failed",
          text: "",
          error: failed,
          ...(remedy !== undefined && { remedy }),
          usage: noUsage(),
          tools: [],
          served: [],
        };
      }
      const code = last.error?.code;
      if (last.error) last.error.message = clean(last.error.message).replaceAll(folder, "IO's sessions");
      if (code === "too_large" && tried === 0 && last.tools.length === 0) {
        log.warn("a conversation no longer fits its model's window and goes on in a new session", { session: spec.id });
        generations.next(spec.id, spec.handover?.(door.window(modelOf(spec.model))) ?? "");
        interrupted = false;
        continue;
      }
      if (code !== "runtime_died" && code !== "session_gone") return last;
      log.warn("a turn was cut off and is taken up again", { owner: request.owner, why: code, tried: tried + 1 });
      sessions.drop(spec.id);
      interrupted = true;
    }
    return last!;
  }

  /** A conversation that had to be shortened goes on in a session that holds only what is left of it. Never within a turn: its record is needed to recover it. */
  function renew({ id }: SessionSpec): void {
    const earlier = door.handover(generations.current(id).session);
    if (earlier !== undefined) generations.next(id, earlier);
  }

  async function prepare(spec: SessionSpec): Promise<void> {
    try {
      await list.ready(spec.model);
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
      if (!login) void list.ready();
    },
    stop: () => runtime.stop(),
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
      run: (request) => inTurn(spec.id, () => run(spec, request)),
      prepare: () => inTurn(spec.id, () => prepare(spec)),
    }),
    async deleteSession(id) {
      door.handover(generations.current(id).session);
      await sessions.remove(id);
    },
    modelFor: (tier) => list.choice().forTier(tier),
    async serving(name) {
      await list.ready();
      return choice.kind === "rehearsal" ? { model: name, standsIn: false } : list.choice().serving(name);
    },
    async about(name) {
      await list.ready(name);
      const model = modelOf(name);
      const { tools, chats } = list.available().find(({ id }) => id === model) ?? {};
      const known = { ...(tools !== undefined && { tools }), ...(chats !== undefined && { chats }) };
      return { model, window: door.window(model), windowFrom: door.windowFrom(model), ...known };
    },
    async models() {
      await list.ready();
      const known = list.available().map(({ id, name }) => ({ id, name }));
      return known.length > 0 ? known : [{ id: list.choice().model, name: list.choice().model }];
    },
  };
}

/** The runtime gets what a program needs and no secret but its own. */
function runtimeEnvironment(env: NodeJS.ProcessEnv, folder: string, gitHubHost?: string): Record<string, string | undefined> {
  const proxies = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"].flatMap((name) => [name, name.toLowerCase()]);
  const names = [
    "PATH",
    "HOME",
    "TMPDIR",
    "LANG",
    "LC_ALL",
    "TZ",
    ...proxies,
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

/** A failed call to GitHub's models, in the form in which the runtime tells of its own troubles. */
function asTrouble({ fault, status, message }: WireFailure): RuntimeTrouble {
  return fault === "network" ? { message: `fetch failed: ${message}` } : { statusCode: status, message };
}
