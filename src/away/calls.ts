import type { z } from "zod";
import type { Redactor } from "../lib/redact.ts";
import type { EngineTool, ToolInvocation } from "../protocol/turns.ts";
import type { ToolCalls } from "../store/tool-calls.ts";
import { type Elsewhere, Refusal, ToolError } from "../tools/tool.ts";
import type { ANSWERS, Wanted } from "./words.ts";

type CallAnswer = z.infer<(typeof ANSWERS)["call"]>;
type Outcome = Omit<Extract<Wanted, { kind: "outcome" }>, "kind">;
type Asked = Omit<Extract<Wanted, { kind: "call" }>, "kind">;

interface Under {
  go: (args: Record<string, unknown>) => void;
  /** What the worker says came of it. */
  outcome: Promise<Outcome>;
  tell: (outcome: Outcome) => void;
  answer: Promise<{ ok: boolean; text: string }>;
}

export interface RemoteCallsDeps {
  journal: ToolCalls;
  redactor: Redactor;
}

/** Calls that a model makes on another host: each passes the gate here, and is done there. */
export function createRemoteCalls({ journal, redactor }: RemoteCallsDeps) {
  const under = new Map<string, Under>();
  const keyOf = (sessionId: string, callId: string) => `${sessionId} ${callId}`;

  const elsewhere: Elsewhere = ({ sessionId, callId, args, signal }) => {
    const call = under.get(keyOf(sessionId, callId));
    if (!call) return undefined;
    call.go(args);
    const stopped = new Promise<never>((_, reject) =>
      signal.addEventListener("abort", () => reject(signal.reason), { once: true }),
    );
    return Promise.race([call.outcome, stopped]).then(({ ok, refused, text }) => {
      if (ok) return text;
      throw refused ? new Refusal(text) : new ToolError(text);
    });
  };

  return {
    elsewhere,
    /** Lets a call pass the gate; answers once that says no, or that the worker is to do it. */
    async call(tools: readonly EngineTool[], { call, tool, args }: Asked, invocation: ToolInvocation): Promise<CallAnswer> {
      const bound = tools.find(({ name }) => name === tool);
      if (!bound) return { answer: { ok: false, text: `There is no tool "${tool}" here.` } };
      const key = keyOf(invocation.sessionId, call);
      const going = deferred<Record<string, unknown>>();
      const outcome = deferred<Outcome>();
      const answer = bound.call(args, invocation).finally(() => under.delete(key));
      under.set(key, { go: going.resolve, outcome: outcome.promise, tell: outcome.resolve, answer });
      return Promise.race([answer.then((each) => ({ answer: each })), going.promise.then((each) => ({ do: each }))]);
    },
    /** Writes down what came of a call; the answer is what the model is to read. */
    async outcome(sessionId: string, outcome: Outcome): Promise<{ ok: boolean; text: string }> {
      const call = under.get(keyOf(sessionId, outcome.call));
      if (call) {
        call.tell(outcome);
        return call.answer;
      }
      // It passed the gate in an earlier life of the daemon.
      const { ok, refused } = outcome;
      const text = redactor.clean(outcome.text);
      const row = journal.latest(sessionId, outcome.call);
      const state = ok ? ("done" as const) : refused ? ("refused" as const) : ("failed" as const);
      if (row?.state === "begun") journal.end(row.seq, row.kind, { state, result: text, resultHash: "", durationMs: 0 });
      return { ok, text };
    },
    /** What a lost worker began and nobody knows the end of. */
    settle(owner: string): void {
      const lost = { state: "unknown" as const, result: "its worker was lost", resultHash: "", durationMs: 0 };
      for (const row of journal.callsOf(owner)) if (row.state === "begun") journal.end(row.seq, row.kind, lost);
    },
  };
}
export type RemoteCalls = ReturnType<typeof createRemoteCalls>;

function deferred<T>(): { promise: Promise<T>; resolve: (value: T) => void } {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
