import type { CopilotSession } from "@github/copilot-sdk";
import type { CallAnswer, EngineTool, SettledCalls, ToolInvocation, TurnRequest, TurnResult } from "../../protocol/turns.ts";
import type { Explainer } from "../models/explain.ts";
import { failedTurn, nothingSaid } from "../models/failures.ts";
import type { ModelGateway } from "../models/gateway.ts";
import type { ModelList } from "../models/list.ts";
import type { SessionSpec } from "../port.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { pictureMark } from "../wire/pictures.ts";
import { createTurnClock } from "./clock.ts";
import type { Generations } from "./generations.ts";
import type { PictureShelf } from "./pictures.ts";
import { afterCutOff, type OpenCall, type Recovery, type RecoveryPlan } from "./recover.ts";
import type { LiveSession, Sessions } from "./sessions.ts";
import { hearCalls, type Reporter } from "./tools.ts";
import { followTurn } from "./turn.ts";

export interface AttemptDeps {
  runtime: Runtime;
  sessions: Sessions;
  generations: Generations;
  list: ModelList;
  door: ModelGateway;
  shelf: Pick<PictureShelf, "keep">;
  explainer: Explainer;
  modelOf: (wanted: string | undefined) => string;
  /** Opens a session within its deadline. */
  opening: (open: () => Promise<LiveSession>) => Promise<LiveSession>;
}

/** One attempt at a turn: a new prompt, or continuing from the session's state. Rejects if no session can be opened. */
export type Attempt = (spec: SessionSpec, request: TurnRequest, plan: RecoveryPlan, number: number) => Promise<TurnResult>;

/** The number of a turn's first attempt in this process; later ones count on. */
export const firstTry = ({ attempt }: Pick<TurnRequest, "attempt">): number => attempt * 10;

const NO_RESULTS: SettledCalls = { beforeTurn: 0, total: 0 };

/** How to begin a turn in a session that contains nothing of it. */
export const AFRESH = {
  recovery: { kind: "send" },
  settled: new Map(),
  before: [],
  heard: new Set(),
} as const satisfies RecoveryPlan;

export function createAttempt(deps: AttemptDeps): Attempt {
  const { runtime, sessions, generations, list, door, shelf, explainer, modelOf, opening } = deps;
  return async (spec, request, plan, number) => {
    const { recovery: planned } = plan;
    let held: RecoveryPlan = plan;
    if (planned.kind === "answered")
      return {
        ...nothingSaid(),
        outcome: "done",
        text: planned.text,
        tools: planned.tools,
        served: planned.model ? [planned.model] : [],
      };
    const shut = await list.ready(spec.model);
    if (shut) return failedTurn(shut);
    const clock = createTurnClock();
    let said = "";
    let current = "";
    const calls = request.onEvent && hearCalls(request.onEvent);
    const turn = {
      owner: request.owner,
      attempt: number,
      settled: (callId: string, sessionId: string) =>
        (sessionId === current ? held.settled.get(callId) : undefined) ?? NO_RESULTS,
      pause: clock.pause,
      lastWords: () => said,
      ...(calls && { reporter: calls.reporter }),
    };
    const expected = generations.current(spec.id).session;
    const { sdk, life, name, inherited } = await opening(() =>
      sessions.acquire(spec, turn, { continuePendingWork: planned.kind === "answer calls" }),
    );
    current = name;
    // A new session contains nothing of the turn that was planned for the old one.
    if (name !== expected) held = AFRESH;
    const { before, heard } = held;
    const recovery = name === expected ? planned : AFRESH.recovery;
    const isFirst = number === firstTry({ attempt: 1 });
    const asked = { ...turn, sessionId: name };
    const unknown = isFirst || recovery.kind !== "send" ? [] : spec.tools.flatMap((tool) => tool.earlier?.(asked) ?? []);
    const begun = { ...request, prompt: afterCutOff(request.prompt, unknown) };
    door.inherit(name, inherited);
    // Before the prompt, since the runtime may call the model as soon as it has the prompt.
    for (const bytes of request.pictures ?? []) await shelf.keep(name, bytes);
    const flush = () => life.client.rpc.sessions.save({ sessionId: name }).then(() => undefined);
    const showPicture = async (bytes: Uint8Array) => pictureMark(await shelf.keep(name, bytes));
    const invocation = { ...turn, sessionId: name, flush, showPicture };
    life.turns += 1;
    try {
      return await followTurn({
        sdk,
        request: { ...request, ...(calls && { onEvent: calls.onEvent }) },
        before,
        heard,
        clock,
        onSaid: (text) => {
          said = text;
        },
        onDeath: life.onDeath,
        begin: () => beginTurn(recovery, { sdk, tools: spec.tools, request: begun, invocation, reporter: calls?.reporter }),
        flush,
        watch: (observer) => door.watch(name, observer),
        window: () => door.window(modelOf(spec.model)),
        explain: (failure) => explainer.failed(failure, modelOf(spec.model), list.available()),
        troubled: explainer.troubled,
      });
    } finally {
      life.turns -= 1;
      sessions.release(spec.id);
      runtime.released(life);
    }
  };
}

interface BeginTurnDeps {
  sdk: CopilotSession;
  tools: readonly EngineTool[];
  request: TurnRequest;
  /** What tools need to know of the turn. */
  invocation: Omit<ToolInvocation, "callId" | "signal">;
  reporter: Reporter | undefined;
}

/** Starts a turn: sends its prompt, or lets an interrupted session continue. */
async function beginTurn(
  recovery: Exclude<Recovery, { kind: "answered" }>,
  { sdk, tools, request, invocation, reporter }: BeginTurnDeps,
): Promise<void> {
  const answer = async ({ requestId, callId, tool: name, args }: OpenCall) => {
    const tool = tools.find((each) => each.name === name);
    const result: CallAnswer = tool
      ? await tool.call(args, { ...invocation, callId, signal: request.signal })
      : { ok: false, state: "refused", text: `There is no tool called ${name} any more.` };
    reporter?.({ tool: name, callId }).ended(result);
    await sdk.rpc.tools.handlePendingToolCall({
      requestId,
      result: { textResultForLlm: result.text, resultType: result.ok ? "success" : "failure" },
    });
  };
  switch (recovery.kind) {
    case "say more":
      return;
    case "send":
      request.onAccepted?.(await sdk.send({ prompt: request.prompt.toWellFormed() }));
      return;
    case "truncate":
      await sdk.rpc.history.truncate({ eventId: recovery.eventId });
      await sdk.rpc.sendMessages({ messages: [] });
      return;
    case "continue":
      await sdk.rpc.sendMessages({ messages: [] });
      return;
    case "answer calls":
      await Promise.all(recovery.calls.map(answer));
  }
}
