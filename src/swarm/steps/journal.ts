import { createHash } from "node:crypto";
import type { z } from "zod";
import { canonicalJson } from "../../lib/canonical-json.ts";
import { type Emit, newsOf } from "../../protocol/events.ts";
import type { ReviewLoop, RunStream } from "../../protocol/runs.ts";
import type { Retry } from "../../protocol/turns.ts";
import type { Usage } from "../../protocol/usage.ts";
import { type Runs, type StepHead, stepOf } from "../../store/runs.ts";
import { recordKeys } from "./keys.ts";
import { readResult, unreadable } from "./stored.ts";

/** Thrown when a run is told to stop, so that its journal ends there. */
export class RunStopped extends Error {
  override readonly name = "RunStopped";
}

/** A run that cannot go on. The message is the reason that is shown. */
export class RunFailed extends Error {
  override readonly name: string = "RunFailed";
}

/** A run that stops because a required approval was not given. */
export class NotApproved extends RunFailed {
  override readonly name = "NotApproved";
}

/** How far an earlier life got with a step that it did not finish. */
export interface Earlier {
  attempts: number;
  sessionId: string | null;
  promptId: string | null;
}

export interface StepContext {
  /** The step's name in the journal. */
  key: string;
  earlier: Earlier | undefined;
  /** Announces that a try failed and another follows. */
  retries(retry: Retry): void;
  track(call: { attempts: number; sessionId: string; promptId: string | null }): void;
  /** Records that a try begins; the returned function records how it ended. */
  tryBegins(): (error: string | undefined) => void;
}

export interface StepOutcome<T> {
  value: T;
  /** Set if the step failed for good: resuming a failed run tries it again. */
  error?: string;
  verdict?: string;
  /** The model that answered, if known. */
  model?: string | undefined;
  /** The worker on another host that did it. */
  worker?: string | undefined;
  usage?: Usage;
}

/** The journal of one run. */
export interface Journal {
  readonly runId: string;
  /** The number of the process that works on the run, counted from 1. */
  readonly life: number;
  /** Does a step once: a finished step's result comes from the journal; an interrupted step is done again. */
  step<T>(
    schema: z.ZodType<T>,
    head: StepHead,
    inputs: unknown,
    work: (life: StepContext) => Promise<StepOutcome<T>>,
  ): Promise<T>;
  /** Records a fact about the run, replacing the earlier value of its key. */
  put(head: StepHead, state: "begun" | "done" | "failed", value: unknown, reason?: string): void;
}

export interface JournalDeps {
  runs: Runs;
  runId: string;
  life: number;
  emit: Emit;
  conversation?: string | undefined;
  signal: AbortSignal;
  now: () => Date;
}

export function createJournal({ runs, runId, life, emit, conversation, signal, now }: JournalDeps): Journal {
  const time = () => now().toISOString();
  const tell = (type: "step.started" | "step.finished", key: string) => {
    const row = runs.step(runId, key);
    if (row) emit(newsOf(type, { runId, ...stepOf(row) }, conversation));
  };
  return {
    runId,
    life,
    async step(schema, head, inputs, work) {
      const hash = hashOf(inputs);
      const known = runs.step(runId, head.key);
      const same = known?.inputs_hash === hash;
      if (known && same && known.state !== "begun" && known.result !== null) {
        const value = readResult(schema, known);
        if (value === undefined) throw new RunFailed(unreadable(`step ${head.key}`));
        return value;
      }
      if (signal.aborted) throw new RunStopped("the run was stopped");
      runs.begin(runId, head, hash, time());
      tell("step.started", head.key);
      const earlier =
        known && same && known.state === "begun"
          ? { attempts: known.attempts, sessionId: known.session_id, promptId: known.prompt_id }
          : undefined;
      const { value, error, verdict, model, worker, usage } = await work({
        key: head.key,
        earlier,
        retries: ({ attempt, why, waitMs }) =>
          emit(newsOf("step.retried", { runId, key: head.key, attempt, why, waitMs }, conversation)),
        track: (call) => runs.track(runId, head.key, call),
        tryBegins() {
          const number = runs.tryBegins(runId, head.key, time());
          return (why) => runs.tryEnds(number, why ?? null, time());
        },
      });
      // Git and checks can be asked again; an answer has been paid for, and a decision is acted on.
      const write = head.decides ? runs.end : head.kind === "call" ? runs.answer : runs.conclude;
      write(
        runId,
        head.key,
        {
          state: error === undefined ? "done" : "failed",
          result: JSON.stringify(value),
          ...(error !== undefined && { error }),
          ...(verdict !== undefined && { verdict }),
          ...(model !== undefined && { model }),
          ...(worker !== undefined && { worker }),
          ...(usage && { usage }),
        },
        time(),
      );
      tell("step.finished", head.key);
      return value;
    },
    put(head, state, value, reason) {
      const known = runs.step(runId, head.key);
      if (!known) runs.begin(runId, head, "", time());
      if (state === "begun") {
        if (known) return;
        runs.note(runId, head.key, JSON.stringify(value));
      } else {
        runs.conclude(runId, head.key, { state, result: JSON.stringify(value), error: reason ?? null }, time());
      }
    },
  };
}

/** Records facts about a run besides its steps. */
export function recorders({ put }: Pick<Journal, "put">) {
  return {
    note: (text: string) => put({ key: recordKeys.note(hashOf(text)), kind: "note", phase: "run" }, "done", text),
    recordLoop: (loop: ReviewLoop) => {
      const { key, phase, stream, agent } = loop;
      put({ key: recordKeys.loop(key), kind: "loop", phase, stream, agent }, "done", loop);
    },
    recordStream: (stream: RunStream, phase: string) => {
      const head = { key: recordKeys.stream(stream.number), kind: "stream" as const, phase, stream: stream.number };
      put(head, stream.status === "failed" ? "failed" : "done", stream, stream.reason ?? undefined);
    },
  };
}

/** A hash that does not depend on the order of keys. */
export function hashOf(value: unknown): string {
  return createHash("sha256")
    .update(canonicalJson(value) ?? "undefined")
    .digest("hex");
}
