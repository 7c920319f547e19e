import type { z } from "zod";
import type { SandboxHeight } from "../../home/safety-config.ts";
import type { Redactor } from "../../lib/redact.ts";
import type { Elsewhere, EngineTool, CallAnswer as Told, ToolInvocation } from "../../protocol/turns.ts";
import type { ToolCalls } from "../../store/tool-calls.ts";
import { Refusal, ToolError } from "../../tools/tool.ts";
import type { ANSWERS, WorkerRequest } from "./job-messages.ts";

type CallAnswer = z.infer<(typeof ANSWERS)["call"]>;
type Outcome = Omit<Extract<WorkerRequest, { kind: "outcome" }>, "kind">;
type Asked = Omit<Extract<WorkerRequest, { kind: "call" }>, "kind">;

/** All tools that a model on a worker can call: the worker runs the first set, the daemon the second. */
const RUN_BY_WORKER: ReadonlySet<string> = new Set(["shell", "shell_output", "shell_stop", "file_ops"]);
const ANSWERED_HERE: ReadonlySet<string> = new Set([
  ...["wiki_read", "wiki_write", "wiki_search", "wiki_list", "wiki_source"],
  "squad_log_decision",
  "todo",
]);

/** Whether the daemon itself runs this tool. */
export const isDoneHere = (tool: string): boolean => ANSWERED_HERE.has(tool);

/** The worker that runs an approved call, and the sandbox it uses. */
export interface CallHost {
  worker: string;
  isSandboxed: boolean;
  /** The sandbox height that now applies to the call's owner. */
  height: () => SandboxHeight;
}

interface Running {
  /** What the worker gets: the answer, or the order to run the call itself. */
  told: Promise<CallAnswer>;
  /** Takes the worker's report of a call that it ran. */
  report: (outcome: Outcome) => void;
  answer: Promise<Told>;
}

export interface RemoteCallsDeps {
  journal: ToolCalls;
  redactor: Redactor;
}

/** Tool calls of models on workers: each passes this daemon's gate, and touches files and processes only on the worker. */
export function createRemoteCalls({ journal, redactor }: RemoteCallsDeps) {
  const running = new Map<string, Running>();
  const keyOf = (sessionId: string, callId: string) => JSON.stringify([sessionId, callId]);

  return {
    /** Passes a call through the gate; resolves when the gate has answered it or told the worker to run it. */
    async call(
      tools: readonly EngineTool[],
      { call, tool, args }: Asked,
      invocation: ToolInvocation,
      { worker, isSandboxed, height }: CallHost,
    ): Promise<CallAnswer> {
      const key = keyOf(invocation.sessionId, call);
      const known = running.get(key);
      if (known) return known.told;
      const bound = tools.find(({ name }) => name === tool);
      if (!bound || !(RUN_BY_WORKER.has(tool) || ANSWERED_HERE.has(tool)))
        return { answer: { ok: false, text: `There is no tool ${JSON.stringify(tool.slice(0, 100))} for a worker.` } };
      const allowed = deferred<Extract<CallAnswer, { do: unknown }>>();
      const outcome = deferred<Outcome>();
      const run: Elsewhere["run"] = async (given, signal, { outside }) => {
        allowed.resolve({ do: given, held: { height: height(), outside } });
        const stopped = new Promise<never>((_, reject) =>
          signal.addEventListener("abort", () => reject(signal.reason), { once: true }),
        );
        const { ok, refused, text } = await Promise.race([outcome.promise, stopped]);
        if (ok) return text;
        throw refused ? new Refusal(text) : new ToolError(text);
      };
      const elsewhere = { worker, isSandboxed, run };
      const answer = bound.call(args, { ...invocation, elsewhere }).finally(() => running.delete(key));
      const told = Promise.race([answer.then((each) => ({ answer: each })), allowed.promise]);
      running.set(key, { told, report: outcome.resolve, answer });
      return told;
    },
    /** Stores the outcome of a call; returns what the model should read. */
    async outcome(sessionId: string, outcome: Outcome): Promise<Told> {
      const call = running.get(keyOf(sessionId, outcome.call));
      if (call) {
        call.report(outcome);
        return call.answer;
      }
      // The call passed the gate before the daemon restarted.
      const { ok, refused } = outcome;
      const text = redactor.clean(outcome.text);
      const row = journal.latest(sessionId, outcome.call);
      const state = ok ? ("done" as const) : refused ? ("refused" as const) : ("failed" as const);
      if (row?.state === "begun") journal.end(row.seq, row.kind, { state, result: text, resultHash: "", durationMs: 0 });
      return state === "refused" ? { ok, text, state } : { ok, text };
    },
    /** Ends the calls that a lost worker began, as unknown. */
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
