import type { z } from "zod";
import type { Attempt, Blobs, Question } from "../dispatch/port.ts";
import type { SessionSpec } from "../engine/port.ts";
import type { TurnEvent, TurnRequest } from "../protocol/turns.ts";
import type { ModelCall } from "../protocol/usage.ts";
import type { RemoteCalls } from "./calls.ts";
import { sent, type Worktree } from "./code.ts";
import { type ANSWERS, codeName, ModelCallTold, Wanted } from "./words.ts";

export interface AnswersDeps {
  worktree: Worktree;
  commit: string;
  blobs: Blobs;
  /** What only a turn is asked. */
  turn?: { spec: SessionSpec; request: TurnRequest; calls: RemoteCalls };
}

type AnswerTo = { [K in Wanted["kind"]]: z.infer<(typeof ANSWERS)[K]> };

/** Answers what a worker asks about one job, and hears what it tells. */
export function createAnswers({ worktree, commit, blobs, turn }: AnswersDeps) {
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
      return { bundle: await sent(worktree, commit, wanted.known, { blobs, name: codeName(attempt.lease) }) };
    if (!turn) throw new Error(`nothing but code is asked for checks, and not "${wanted.kind}"`);
    const { spec, request, calls } = turn;
    switch (wanted.kind) {
      case "system":
        return spec.systemMessage(wanted.window);
      case "handover":
        return spec.handover?.(wanted.window) ?? "";
      case "permit":
        return { refusal: (await request.beforeCall?.(signal)) ?? null };
      case "outcome":
        return calls.outcome(attempt.lease, wanted);
      case "call":
        return calls.call(spec.tools, wanted, {
          ...{ callId: wanted.call, sessionId: attempt.lease, owner: request.owner, attempt: request.attempt, signal },
          // Each attempt has a tree of its own: what another did in its own says nothing here.
          settled: () => Number.POSITIVE_INFINITY,
          lastWords: () => wanted.said,
          flush: async () => undefined,
        });
    }
  }

  return {
    answer: ({ data, attempt, signal }: Question) => answer(Wanted.parse(data), attempt, signal),
    hear(kind: "usage" | "delta", data: unknown): void {
      const tell = turn?.request.onEvent;
      if (kind === "usage") tell?.({ kind: "usage", call: ModelCallTold.parse(data) as ModelCall });
      else tell?.(data as Exclude<TurnEvent, { kind: "usage" }>);
    },
    end: () => holder?.stop.abort(new Error("the job has ended")),
  };
}
export type Answers = ReturnType<typeof createAnswers>;
