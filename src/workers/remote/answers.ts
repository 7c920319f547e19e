import type { z } from "zod";
import type { SessionSpec } from "../../engine/port.ts";
import { firstTry } from "../../engine/sessions/attempt.ts";
import { afterCutOff } from "../../engine/sessions/recover.ts";
import type { SandboxHeight } from "../../home/safety-config.ts";
import type { EarlierCall, SettledCalls, TurnRequest } from "../../protocol/turns.ts";
import type { Attempt, Blobs, Question } from "../jobs/port.ts";
import { isDoneHere, type RemoteCalls } from "./calls.ts";
import { sent, type Worktree } from "./code.ts";
import { type ANSWERS, codeName, readModelCall, TurnEventTold, Wanted } from "./job-messages.ts";

export interface AnswersDeps {
  worktree: Worktree;
  commit: string;
  blobs: (lease: string) => Blobs;
  /** Whether a worker can hold commands in a sandbox. */
  isSandboxed: (worker: string) => Promise<boolean>;
  /** The height that holds now for what the job belongs to. */
  height: () => SandboxHeight;
  /** What only a turn is asked. */
  turn?: { spec: SessionSpec; request: TurnRequest; calls: RemoteCalls };
}

const NO_ANSWERS: SettledCalls = { beforeTurn: 0, total: 0 };
const ALL_ANSWERS: SettledCalls = { beforeTurn: 0, total: Number.POSITIVE_INFINITY };

/**
 * Which answers the model on a worker reads. Of what the daemon did for another lease it reads none, and of its own lease all,
 * unless its session had to be begun anew. What was run on a worker is gone with that worker's tree, and is run again.
 */
function settledFor({ call, tool, tried = 0, answered }: WantedCall, lease: string) {
  return (id: string, sessionId: string): SettledCalls => {
    if (!isDoneHere(tool)) return ALL_ANSWERS;
    if (sessionId !== lease) return NO_ANSWERS;
    if (answered === undefined) return ALL_ANSWERS;
    if (id === call) return { beforeTurn: 0, total: answered };
    return tried === 0 ? ALL_ANSWERS : NO_ANSWERS;
  };
}

type WantedCall = Extract<Wanted, { kind: "call" }>;
type AnswerTo = { [K in Wanted["kind"]]: z.infer<(typeof ANSWERS)[K]> };

/** Answers what a worker asks about one job, and hears what it tells. */
export function createAnswers({ worktree, commit, blobs, isSandboxed, height, turn }: AnswersDeps) {
  let holder: { lease: string; stop: AbortController } | undefined;

  /** What an earlier holder of the job asked is waited for no more. */
  function stopOf({ lease }: Attempt): AbortSignal {
    if (holder?.lease !== lease) {
      holder?.stop.abort(new Error("its worker was lost"));
      holder = { lease, stop: new AbortController() };
    }
    return turn ? AbortSignal.any([holder.stop.signal, turn.request.signal]) : holder.stop.signal;
  }

  async function answer(wanted: Wanted, attempt: Attempt, asker: AbortSignal): Promise<AnswerTo[Wanted["kind"]]> {
    const signal = AbortSignal.any([asker, stopOf(attempt)]);
    if (wanted.kind === "code")
      return {
        bundle: await sent(worktree, commit, wanted.known, { blobs: blobs(attempt.lease), name: codeName(attempt.lease) }),
      };
    if (!turn) throw new Error(`nothing but code is asked for checks, and not "${wanted.kind}"`);
    const { spec, request, calls } = turn;
    switch (wanted.kind) {
      case "system":
        return afterCutOff(await spec.systemMessage(wanted.window), earlierCalls(turn, attempt));
      case "handover":
        return spec.handover?.(wanted.window) ?? "";
      case "permit":
        return { refusal: (await request.beforeCall?.(signal, async () => undefined)) ?? null };
      case "outcome":
        return calls.outcome(attempt.lease, wanted);
      case "call":
        return calls.call(
          spec.tools,
          wanted,
          {
            ...{ callId: wanted.call, sessionId: attempt.lease, owner: request.owner, signal },
            attempt: firstTry(request) + (wanted.tried ?? 0),
            settled: settledFor(wanted, attempt.lease),
            lastWords: () => wanted.said,
            flush: async () => undefined,
          },
          { worker: attempt.worker, isSandboxed: await isSandboxed(attempt.worker), height },
        );
    }
  }

  return {
    answer: ({ data, attempt, signal }: Question) => answer(Wanted.parse(data), attempt, signal),
    hear(kind: "usage" | "delta", data: unknown): void {
      const tell = turn?.request.onEvent;
      const event = kind === "usage" ? { kind, call: readModelCall(data) } : TurnEventTold.safeParse(data).data;
      if (event) tell?.(event);
    },
    end: () => holder?.stop.abort(new Error("the job has ended")),
  };
}
export type Answers = ReturnType<typeof createAnswers>;

/** What the daemon did for an earlier holder of the job, and this one's session does not show. */
function earlierCalls({ spec, request }: NonNullable<AnswersDeps["turn"]>, { lease }: Attempt): EarlierCall[] {
  const settled = (_id: string, sessionId: string) => (sessionId === lease ? ALL_ANSWERS : NO_ANSWERS);
  const asked = { owner: request.owner, attempt: firstTry(request), sessionId: lease, settled };
  return spec.tools.flatMap((tool) => (isDoneHere(tool.name) && tool.earlier?.(asked)) || []);
}
