import type { TurnRequest, TurnResult } from "../protocol/turns.ts";
import { beginTurn } from "./begin-turn.ts";
import { createTurnClock } from "./clock.ts";
import type { Explainer } from "./explain.ts";
import { failedTurn, nothingSaid } from "./failures.ts";
import type { Generations } from "./generations.ts";
import type { ModelDoor } from "./model-door.ts";
import type { ModelList } from "./model-list.ts";
import type { SessionSpec } from "./port.ts";
import type { RecoveryPlan } from "./recover.ts";
import type { Runtime } from "./runtime.ts";
import type { LiveSession, Sessions } from "./sessions.ts";
import { followTurn } from "./turn.ts";

export interface AttemptDeps {
  runtime: Runtime;
  sessions: Sessions;
  generations: Generations;
  list: ModelList;
  door: ModelDoor;
  explainer: Explainer;
  modelOf: (wanted: string | undefined) => string;
  /** Opens a session within its deadline. */
  opening: (open: () => Promise<LiveSession>) => Promise<LiveSession>;
}

/** One try at a turn: a fresh prompt, or going on from where the session stands. Rejects when no session can be had. */
export type Attempt = (spec: SessionSpec, request: TurnRequest, plan: RecoveryPlan, number: number) => Promise<TurnResult>;

/** How a turn is begun in a session that holds nothing of it. */
export const AFRESH = {
  recovery: { kind: "send" },
  settled: new Map(),
  before: [],
  heard: new Set(),
} as const satisfies RecoveryPlan;

export function createAttempt({ runtime, sessions, generations, list, door, explainer, modelOf, opening }: AttemptDeps): Attempt {
  return async (spec, request, plan, number) => {
    const { recovery: planned, settled } = plan;
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
    const turn = {
      owner: request.owner,
      attempt: number,
      settled: (callId: string) => settled.get(callId) ?? 0,
      pause: clock.pause,
      lastWords: () => said,
    };
    const expected = generations.current(spec.id).session;
    const { sdk, life, name } = await opening(() =>
      sessions.acquire(spec, turn, { continuePendingWork: planned.kind === "answer calls" }),
    );
    // A session that had to be begun anew holds nothing of the turn that was planned for the old one.
    const { recovery, before, heard } = name === expected ? { ...plan, recovery: planned } : AFRESH;
    const flush = () => life.client.rpc.sessions.save({ sessionId: name }).then(() => undefined);
    const invocation = { ...turn, sessionId: spec.id, flush };
    life.turns += 1;
    try {
      return await followTurn({
        sdk,
        request,
        before,
        heard,
        clock,
        onSaid: (text) => {
          said = text;
        },
        onDeath: life.onDeath,
        begin: () => beginTurn(recovery, { sdk, tools: spec.tools, request, invocation }),
        watch: (observer) => door.watch(name, observer),
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
