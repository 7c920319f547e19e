import { messageOf, UserError } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import type { Redactor } from "../lib/redact.ts";
import { asData } from "../lib/untrusted.ts";
import type { FileEdit } from "../protocol/messages.ts";
import { type CallAnswer, LONGEST_CALL_MS, type ToolInvocation } from "../protocol/turns.ts";
import type { ToolCallEnd } from "../store/tool-calls.ts";
import { createCallOutput } from "./call-output.ts";
import { whatChanged } from "./call-targets.ts";
import { Refusal, type Tool, ToolError, type ToolScope, UnknownOutcome } from "./tool.ts";

export interface Performed {
  state: ToolCallEnd["state"];
  answer: CallAnswer;
  /** Resolves when work that the call started in the background has ended. */
  lasts?: Promise<void>;
}

export interface PerformDeps {
  redactor: Redactor;
  log: Log;
  /** How long to wait for a tool that was told to stop. */
  graceMs: number;
  /** How long the whole call has taken so far, such as for its approval. */
  spentMs: number;
}

/** A call that has been allowed. */
export interface Call {
  tool: Tool;
  args: Record<string, unknown>;
  kind: "read" | "effect";
  scope: ToolScope;
  invocation: ToolInvocation;
}

const FLUSH_MS = 10_000;
/** The least time of a call whose approval took nearly all of it. */
const LEAST_MS = 1_000;
/** Extra time for the answer of another host, which enforces the deadline itself. */
const AWAY_MS = 15_000;

/** Runs a tool within its deadline, after the request has been recorded. Never rejects. */
export async function perform(call: Call, { redactor, log, graceMs, spentMs }: PerformDeps): Promise<Performed> {
  const { tool, args, kind, scope, invocation } = call;
  const prevented = await whatPrevents(call, log);
  if (prevented !== undefined) return refused(`${tool.name} was not started: ${prevented}`);
  const changed = whatChanged(tool.name, scope.approved ?? []);
  if (changed !== undefined) return refused(changed);

  const wantedMs = typeof tool.deadlineMs === "function" ? tool.deadlineMs(args) : tool.deadlineMs;
  const deadlineMs = Math.min(wantedMs, Math.max(LEAST_MS, LONGEST_CALL_MS - spentMs));
  const stop = new AbortController();
  const onAbort = () => stop.abort(invocation.signal.reason);
  invocation.signal.addEventListener("abort", onAbort, { once: true });
  let late = false;
  const timer = setTimeout(
    () => {
      late = true;
      stop.abort(new Error("the deadline has passed"));
    },
    deadlineMs + (invocation.elsewhere ? AWAY_MS : 0),
  );
  const { report, elsewhere, showPicture } = invocation;
  const output = createCallOutput({ clean: redactor.clean, report: report && ((piece) => report({ output: piece })) });
  const onEdit = ({ path, before, after }: FileEdit) => {
    const { clean } = redactor;
    report?.({ diff: { path: clean(path), before: before === null ? null : clean(before), after: clean(after) } });
  };
  let lasting: Promise<void> | undefined;
  const lasts = (until: Promise<void>) => {
    lasting = until;
  };
  const told = { onOutput: output.add, onEdit, lasts, ...(showPicture && { showPicture }) };
  const context = { ...scope, owner: invocation.owner, callId: invocation.callId, signal: stop.signal, ...told };
  const held = { outside: scope.profile?.outside === true };
  const run = () => (tool.onHost && elsewhere ? elsewhere.run(args, stop.signal, held) : tool.run(args, context));
  const end = await within(graceMs, stop.signal, run);
  output.end();
  clearTimeout(timer);
  invocation.signal.removeEventListener("abort", onAbort);

  if (end.ending === "done")
    return { state: "done", answer: { ok: true, text: redactor.clean(end.value) }, ...(lasting && { lasts: lasting }) };
  if (invocation.signal.aborted) {
    const text = `${tool.name} was stopped before it finished${kind === "effect" ? "; a part of it may have been done" : ""}.`;
    return { state: "unknown", answer: { ok: false, text: withOutput(text, output.tail()) } };
  }
  const error = end.ending === "failed" ? end.error : undefined;
  if (error instanceof Refusal) return refused(redactor.clean(error.message));
  if (error instanceof UnknownOutcome && kind === "effect")
    return { state: "unknown", answer: { ok: false, text: redactor.clean(error.message) } };
  if (error instanceof ToolError || error instanceof UserError) return failed(redactor.clean(error.message));
  if (late) {
    const partly = kind === "effect" ? " A part of it may have been done: look before you do it again." : "";
    const text = `${tool.name} did not finish within ${Math.round(deadlineMs / 100) / 10} s and was stopped.${partly}`;
    return failed(withOutput(text, output.tail()));
  }
  log.error("a tool failed unexpectedly", { tool: tool.name, owner: invocation.owner, error: error ?? end });
  return failed(`${tool.name} failed because of a fault inside IO; it was logged. The same call is likely to fail again.`);
}

/** Appends what the call printed before it was stopped. */
const withOutput = (text: string, tail: string) => (tail === "" ? text : `${text} Until then it printed:\n${asData(tail)}`);

const refused = (text: string): Performed => ({ state: "refused", answer: { ok: false, text } });
const failed = (text: string): Performed => ({ state: "failed", answer: { ok: false, text } });

/** Why a call cannot start. An effect must wait until the runtime has recorded the request. */
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

/** Waits for the work; after the signal aborts, at most `ms` longer. */
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
