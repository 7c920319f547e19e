import type { z } from "zod";
import type { SessionSpec } from "../../engine/port.ts";
import { firstTry } from "../../engine/sessions/attempt.ts";
import { afterCutOff } from "../../engine/sessions/recover.ts";
import type { SandboxHeight } from "../../home/safety-config.ts";
import type { EarlierCall, SettledCalls, TurnRequest } from "../../protocol/turns.ts";
import type { Attempt, Blobs, Question } from "../jobs/port.ts";
import { isDoneHere, type RemoteCalls } from "./calls.ts";
import { sendCode, type Worktree } from "./code.ts";
import { type ANSWERS, codeName, ReportedTurnEvent, readModelCall, WorkerRequest } from "./job-messages.ts";

export interface AnswersDeps {
  worktree: Worktree;
  commit: string;
  blobs: (lease: string) => Blobs;
  /** Whether a worker can run commands in a sandbox. */
  isSandboxed: (worker: string) => Promise<boolean>;
  /** The sandbox height that now applies to the job's owner. */
  height: () => SandboxHeight;
  /** Only needed to answer questions about a turn. */
  turn?: { spec: SessionSpec; request: TurnRequest; calls: RemoteCalls };
}

const NO_ANSWERS: SettledCalls = { beforeTurn: 0, total: 0 };
const ALL_ANSWERS: SettledCalls = { beforeTurn: 0, total: Number.POSITIVE_INFINITY };

/**
 * Which results of a call the worker's session already contains. For tools that the daemon runs: all of this lease, but none of
 * another lease, nor any if the session had to start anew. What ran on another worker is gone with its tree, and runs again.
 */
function settledFor({ call, tool, tried = 0, answered }: RequestedCall, lease: string) {
  return (id: string, sessionId: string): SettledCalls => {
    if (!isDoneHere(tool)) return ALL_ANSWERS;
    if (sessionId !== lease) return NO_ANSWERS;
    if (answered === undefined) return ALL_ANSWERS;
    if (id === call) return { beforeTurn: 0, total: answered };
    return tried === 0 ? ALL_ANSWERS : NO_ANSWERS;
  };
}

type RequestedCall = Extract<WorkerRequest, { kind: "call" }>;
type AnswerTo = { [K in WorkerRequest["kind"]]: z.infer<(typeof ANSWERS)[K]> };

/** Answers what a worker asks about one job, and receives its events. */
export function createAnswers({ worktree, commit, blobs, isSandboxed, height, turn }: AnswersDeps) {
  let holder: { lease: string; stop: AbortController } | undefined;

  /** Stops waiting for what an earlier holder of the job asked. */
  function stopOf({ lease }: Attempt): AbortSignal {
    if (holder?.lease !== lease) {
      holder?.stop.abort(new Error("its worker was lost"));
      holder = { lease, stop: new AbortController() };
    }
    return turn ? AbortSignal.any([holder.stop.signal, turn.request.signal]) : holder.stop.signal;
  }

  async function answer(wanted: WorkerRequest, attempt: Attempt, asker: AbortSignal): Promise<AnswerTo[WorkerRequest["kind"]]> {
    const signal = AbortSignal.any([asker, stopOf(attempt)]);
    if (wanted.kind === "code")
      return {
        bundle: await sendCode(worktree, commit, wanted.known, { blobs: blobs(attempt.lease), name: codeName(attempt.lease) }),
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
    answer: ({ data, attempt, signal }: Question) => answer(WorkerRequest.parse(data), attempt, signal),
    receive(kind: "usage" | "delta", data: unknown): void {
      const tell = turn?.request.onEvent;
      const event = kind === "usage" ? { kind, call: readModelCall(data) } : ReportedTurnEvent.safeParse(data).data;
      if (event) tell?.(event);
    },
    end: () => holder?.stop.abort(new Error("the job has ended")),
  };
}
export type Answers = ReturnType<typeof createAnswers>;

/** What the daemon did for an earlier holder of the job; this holder's session does not show it. */
function earlierCalls({ spec, request }: NonNullable<AnswersDeps["turn"]>, { lease }: Attempt): EarlierCall[] {
  const settled = (_id: string, sessionId: string) => (sessionId === lease ? ALL_ANSWERS : NO_ANSWERS);
  const asked = { owner: request.owner, attempt: firstTry(request), sessionId: lease, settled };
  return spec.tools.flatMap((tool) => (isDoneHere(tool.name) && tool.earlier?.(asked)) || []);
}
