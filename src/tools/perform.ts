import { messageOf, UserError } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import type { Redactor } from "../lib/redact.ts";
import type { ToolInvocation } from "../protocol/turns.ts";
import type { ToolCallEnd } from "../store/tool-calls.ts";
import { Refusal, type Tool, ToolError, type ToolScope } from "./tool.ts";

/** What the model reads. */
export interface Answer {
  ok: boolean;
  text: string;
}

export interface Performed {
  state: ToolCallEnd["state"];
  answer: Answer;
}

export interface PerformDeps {
  redactor: Redactor;
  log: Log;
  /** How long a tool that was told to stop may take to do so before it is no longer waited for. */
  graceMs: number;
}

/** A call that may be made. */
export interface Call {
  tool: Tool;
  args: Record<string, unknown>;
  kind: "read" | "effect";
  scope: ToolScope;
  invocation: ToolInvocation;
}

const FLUSH_MS = 10_000;
/** What another host has its own deadline for may take so much longer to be heard of. */
const AWAY_MS = 15_000;

/** Runs a tool under its deadline, once the request is written down. Never rejects. */
export async function perform(call: Call, { redactor, log, graceMs }: PerformDeps): Promise<Performed> {
  const { tool, args, kind, scope, invocation } = call;
  const prevented = await whatPrevents(call, log);
  if (prevented !== undefined) return refused(`${tool.name} was not started: ${prevented}`);

  const deadlineMs = typeof tool.deadlineMs === "function" ? tool.deadlineMs(args) : tool.deadlineMs;
  const stop = new AbortController();
  const onAbort = () => stop.abort(invocation.signal.reason);
  invocation.signal.addEventListener("abort", onAbort, { once: true });
  let late = false;
  const timer = setTimeout(
    () => {
      late = true;
      stop.abort(new Error("the deadline has passed"));
    },
    deadlineMs + (scope.elsewhere ? AWAY_MS : 0),
  );
  const context = { ...scope, owner: invocation.owner, signal: stop.signal };
  const passed = { sessionId: invocation.sessionId, callId: invocation.callId, args, signal: stop.signal };
  const run = async () => (tool.onHost && scope.elsewhere?.(passed)) || tool.run(args, context);
  const end = await within(graceMs, stop.signal, run);
  clearTimeout(timer);
  invocation.signal.removeEventListener("abort", onAbort);

  if (end.ending === "done") return { state: "done", answer: { ok: true, text: redactor.clean(end.value) } };
  if (invocation.signal.aborted) {
    const text = `${tool.name} was stopped before it finished${kind === "effect" ? "; a part of it may have been done" : ""}.`;
    return { state: kind === "effect" ? "unknown" : "failed", answer: { ok: false, text } };
  }
  const error = end.ending === "failed" ? end.error : undefined;
  if (error instanceof Refusal) return refused(redactor.clean(error.message));
  if (error instanceof ToolError || error instanceof UserError) return failed(redactor.clean(error.message));
  if (late) {
    const partly = kind === "effect" ? " A part of it may have been done: look before you do it again." : "";
    return failed(`${tool.name} did not finish within ${Math.round(deadlineMs / 100) / 10} s and was stopped.${partly}`);
  }
  log.error("a tool failed unexpectedly", { tool: tool.name, owner: invocation.owner, error: error ?? end });
  return failed(`${tool.name} failed because of a fault inside IO; it was logged. The same call is likely to fail again.`);
}

const refused = (text: string): Performed => ({ state: "refused", answer: { ok: false, text } });
const failed = (text: string): Performed => ({ state: "failed", answer: { ok: false, text } });

/** Why a call cannot be begun. An effect is not, before the runtime has written down that it was asked for. */
export async function whatPrevents({ tool, kind, invocation: { signal, flush } }: Call, log: Log): Promise<string | undefined> {
  if (kind === "effect") {
    const flushed = await within(0, AbortSignal.any([signal, AbortSignal.timeout(FLUSH_MS)]), flush);
    if (flushed.ending === "failed") {
      log.warn("the runtime could not write down a tool call", { tool: tool.name, error: flushed.error });
      return `the request could not be written down first (${messageOf(flushed.error)}).`;
    }
    if (flushed.ending === "late") return "the request could not be written down in time.";
  }
  return signal.aborted ? "the turn was stopped." : undefined;
}

type Ending<T> = { ending: "done"; value: T } | { ending: "failed"; error: unknown } | { ending: "late" };

/** Waits for the work; once the signal has gone, only for so long. */
function within<T>(ms: number, signal: AbortSignal, work: () => Promise<T>): Promise<Ending<T>> {
  return new Promise((settle) => {
    let timer: NodeJS.Timeout | undefined;
    const onAbort = () => {
      timer = setTimeout(() => finish({ ending: "late" }), ms);
    };
    const finish = (ending: Ending<T>) => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      settle(ending);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    Promise.resolve()
      .then(work)
      .then(
        (value) => finish({ ending: "done", value }),
        (error: unknown) => finish({ ending: "failed", error }),
      );
  });
}
