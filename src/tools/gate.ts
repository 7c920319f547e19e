import { createHash } from "node:crypto";
import { messageOf, UserError } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import type { Redactor } from "../lib/redact.ts";
import type { EngineTool, ToolInvocation } from "../protocol/turns.ts";
import type { Store } from "../store/open.ts";
import { createToolCalls, type NewToolCall, type ToolCall, type ToolCallEnd, type ToolCalls } from "../store/tool-calls.ts";
import { explainArguments, parametersOf } from "./schema.ts";
import { Refusal, type Tool, ToolError, type ToolScope } from "./tool.ts";

/** Says why a call may not be made, or nothing. */
export type Policy = (tool: Tool, args: Record<string, unknown>, scope: ToolScope) => string | undefined;

export interface GateDeps {
  store: Store;
  redactor: Redactor;
  log: Log;
  policy: Policy;
  now?: () => Date;
  /** How many characters of a result, and of the arguments, the journal keeps. */
  keep?: number;
  /** How long a tool that was told to stop may take to do so before it is no longer waited for. */
  graceMs?: number;
}

/** The one place every tool call passes. */
export interface Gate {
  bind(tools: readonly Tool[], scope: ToolScope): EngineTool[];
  callsOf: ToolCalls["callsOf"];
  effectsOf: ToolCalls["effectsOf"];
}

interface Answer {
  ok: boolean;
  text: string;
}

const FLUSH_MS = 10_000;
/** How many characters of one text among the arguments the journal keeps. */
const LONG_TEXT = 5_000;

export function createGate({
  store,
  redactor,
  log,
  policy,
  now = () => new Date(),
  keep = 20_000,
  graceMs = 1_500,
}: GateDeps): Gate {
  const journal = createToolCalls(store);
  const running = new Map<string, Promise<Answer>>();
  const shapes = new WeakMap<Tool["schema"], { strict: Tool["schema"]; parameters: Record<string, unknown> }>();

  /** Tools are bound anew for every agent; what their schemas come to is worked out once. */
  function shapeOf({ schema }: Tool) {
    const known = shapes.get(schema) ?? { strict: schema.strict(), parameters: parametersOf(schema) };
    shapes.set(schema, known);
    return known;
  }

  async function pass(
    tool: Tool,
    schema: Tool["schema"],
    scope: ToolScope,
    given: unknown,
    invocation: ToolInvocation,
  ): Promise<Answer> {
    const raw = given ?? {};
    const parsed = schema.safeParse(raw);
    const args = parsed.success ? parsed.data : raw;
    const spelled = canonical(args);
    const kind = !parsed.success ? "read" : typeof tool.kind === "function" ? tool.kind(parsed.data) : tool.kind;
    const call: NewToolCall = {
      callId: invocation.callId,
      sessionId: invocation.sessionId,
      owner: invocation.owner,
      attempt: invocation.attempt,
      actor: scope.actor,
      tool: tool.name,
      kind,
      args: shorten(redactor.clean(canonical(clipped(args, redactor))), keep),
      argsHash: sha256(spelled),
      state: "begun",
      createdAt: now().toISOString(),
    };

    const same = journal.latest(call.sessionId, call.callId);
    const isAgain =
      same?.owner === call.owner &&
      same.tool === call.tool &&
      same.argsHash === call.argsHash &&
      // Within one attempt, or once its answer is in the session, the same id is another call of a model that counts anew.
      same.attempt < call.attempt &&
      !isSettled(same, invocation);
    const again = isAgain ? same : undefined;
    if (same && !again) call.callId = unusedId(journal, call);

    const refusal = parsed.success ? policy(tool, parsed.data, scope) : explainArguments(tool.name, parsed.error, schema, raw);
    if (refusal !== undefined || !parsed.success) {
      const answer = { ok: false, text: redactor.clean(refusal ?? "") };
      if (!again) journal.end(journal.begin({ ...call, state: "refused" }), kind, outcome("refused", answer.text, 0));
      return answer;
    }

    if (again && (again.state === "done" || again.state === "failed")) {
      journal.carryOver(again, call.attempt, again.state);
      return stored(again);
    }
    if (again && kind === "effect" && again.state !== "refused") {
      const answer = unknownOutcome(tool.name);
      journal.carryOver(again, call.attempt, "unknown");
      journal.end(again.seq, kind, outcome("unknown", answer.text, again.durationMs ?? 0));
      return answer;
    }
    if (!again && kind === "effect") {
      const lost = journal.interrupted(call).find((earlier) => !isSettled(earlier, invocation));
      if (lost) {
        const finished = lost.state === "done" || lost.state === "failed";
        const answer = finished ? stored(lost) : unknownOutcome(tool.name);
        journal.supersede(lost.seq, call, outcome(finished ? lost.state : "unknown", answer.text, 0));
        return answer;
      }
    }

    if (again) journal.carryOver(again, call.attempt, "begun");
    const seq = again?.seq ?? journal.begin(call);
    const started = performance.now();
    const { state, answer } = await perform(tool, parsed.data, kind, scope, invocation);
    try {
      journal.end(seq, kind, outcome(state, answer.text, performance.now() - started));
    } catch (error) {
      log.error("a tool's result could not be recorded", { tool: tool.name, owner: call.owner, error });
    }
    return answer;
  }

  /** Runs the tool under its deadline. Never rejects. */
  async function perform(
    tool: Tool,
    args: Record<string, unknown>,
    kind: "read" | "effect",
    scope: ToolScope,
    invocation: ToolInvocation,
  ): Promise<{ state: ToolCallEnd["state"]; answer: Answer }> {
    const refused = (text: string) => ({ state: "refused" as const, answer: { ok: false, text } });
    const notStarted = `${tool.name} was not started`;
    if (kind === "effect") {
      const flushed = await within(0, AbortSignal.any([invocation.signal, AbortSignal.timeout(FLUSH_MS)]), invocation.flush);
      if (flushed.ending === "failed") {
        log.warn("the runtime could not write down a tool call", { tool: tool.name, error: flushed.error });
        return refused(`${notStarted}: the request could not be written down first (${messageOf(flushed.error)}).`);
      }
      if (flushed.ending === "late") return refused(`${notStarted}: the request could not be written down in time.`);
    }
    if (invocation.signal.aborted) return refused(`${notStarted}: the turn was stopped.`);

    const deadlineMs = typeof tool.deadlineMs === "function" ? tool.deadlineMs(args) : tool.deadlineMs;
    const stop = new AbortController();
    const onAbort = () => stop.abort(invocation.signal.reason);
    invocation.signal.addEventListener("abort", onAbort, { once: true });
    let late = false;
    const timer = setTimeout(() => {
      late = true;
      stop.abort(new Error("the deadline has passed"));
    }, deadlineMs);
    const context = { ...scope, owner: invocation.owner, signal: stop.signal };
    const end = await within(graceMs, stop.signal, () => tool.run(args, context));
    clearTimeout(timer);
    invocation.signal.removeEventListener("abort", onAbort);

    if (end.ending === "done") return { state: "done", answer: { ok: true, text: redactor.clean(end.value) } };
    if (invocation.signal.aborted) {
      const text = `${tool.name} was stopped before it finished${kind === "effect" ? "; a part of it may have been done" : ""}.`;
      return { state: kind === "effect" ? "unknown" : "failed", answer: { ok: false, text } };
    }
    if (end.ending === "failed" && end.error instanceof Refusal) return refused(redactor.clean(end.error.message));
    if (end.ending === "failed" && (end.error instanceof ToolError || end.error instanceof UserError)) {
      return { state: "failed", answer: { ok: false, text: redactor.clean(end.error.message) } };
    }
    if (late) {
      const partly = kind === "effect" ? " A part of it may have been done: look before you do it again." : "";
      const text = `${tool.name} did not finish within ${Math.round(deadlineMs / 100) / 10} s and was stopped.${partly}`;
      return { state: "failed", answer: { ok: false, text } };
    }
    log.error("a tool failed unexpectedly", {
      tool: tool.name,
      owner: invocation.owner,
      error: end.ending === "failed" ? end.error : end,
    });
    const text = `${tool.name} failed because of a fault inside IO; it was logged. The same call is likely to fail again.`;
    return { state: "failed", answer: { ok: false, text } };
  }

  const outcome = (state: ToolCallEnd["state"], text: string, durationMs: number): ToolCallEnd => ({
    state,
    result: shorten(text, keep),
    resultHash: sha256(text),
    durationMs,
  });

  return {
    bind(tools, scope) {
      return tools.map((tool) => {
        const { strict: schema, parameters } = shapeOf(tool);
        return {
          name: tool.name,
          description: tool.description,
          parameters,
          call(args, invocation) {
            const key = JSON.stringify([invocation.sessionId, invocation.callId, invocation.attempt, tool.name]);
            const live = running.get(key);
            if (live) return live;
            const answer = pass(tool, schema, scope, args, invocation)
              .catch((error: unknown) => {
                log.error("a tool call could not pass the gate", { tool: tool.name, owner: invocation.owner, error });
                return {
                  ok: false,
                  text: `${tool.name} was not run: the call could not be recorded, because of a fault inside IO.`,
                };
              })
              .finally(() => running.delete(key));
            running.set(key, answer);
            return answer;
          },
        };
      });
    },
    callsOf: journal.callsOf,
    effectsOf: journal.effectsOf,
  };
}

/** Some models number their calls anew in every answer: such an id is made unique. */
function unusedId(journal: ToolCalls, call: NewToolCall): string {
  for (let copy = 2; ; copy += 1) {
    const id = `${call.callId}~${copy}`;
    if (!journal.find(call.sessionId, id)) return id;
  }
}

/** Whether the session holds the answer to a call: of those with its id, as many as it has answers for, the earliest first. */
function isSettled({ callId }: ToolCall, { settled }: ToolInvocation): boolean {
  const [, id = callId, copy = "1"] = /^(.*)~(\d+)$/s.exec(callId) ?? [];
  return (settled?.(id) ?? 0) >= Number(copy);
}

function stored(call: ToolCall): Answer {
  return { ok: call.state === "done", text: call.result ?? "" };
}

function unknownOutcome(tool: string): Answer {
  return {
    ok: false,
    text: `This call of ${tool} was begun before an interruption, and whether it took effect is unknown. It was not run again. Look at what is there first; call it again only if it is still needed, and tell the user.`,
  };
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

/** JSON whose keys are in order, so that equal arguments are equal text. */
function canonical(value: unknown): string {
  return (
    JSON.stringify(value, (_key, part: unknown) =>
      typeof part === "object" && part !== null && !Array.isArray(part)
        ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
        : part,
    ) ?? "null"
  );
}

/** Arguments for the record: one long text does not crowd out the others. */
function clipped(value: unknown, redactor: Redactor): unknown {
  if (typeof value === "string") return value.length <= LONG_TEXT ? value : shorten(redactor.clean(value), LONG_TEXT);
  if (Array.isArray(value)) return value.map((part) => clipped(part, redactor));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, clipped(part, redactor)]));
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function shorten(text: string, limit: number): string {
  return text.length <= limit
    ? text
    : `${text.slice(0, limit)}\n… (shortened: ${text.length - limit} of ${text.length} characters left out)`;
}
