import type { CopilotSession, SessionEvent } from "@github/copilot-sdk";
import { messageOf } from "../../lib/errors.ts";
import type { ContextUse, TurnEvent, TurnRequest, TurnResult } from "../../protocol/turns.ts";
import { addCall, type ModelCall, noUsage } from "../../protocol/usage.ts";
import { type RuntimeTrouble, type TurnError, turnError } from "../models/failures.ts";
import { mayPass, WireFailure } from "../wire/failure.ts";
import type { Observer } from "../wire/observer.ts";
import type { TurnClock } from "./clock.ts";
import { createSteerer } from "./steer.ts";

export interface TurnDeps {
  sdk: CopilotSession;
  /** Calls back when this session's runtime ends, until unsubscribed. */
  onDeath: (listener: () => void) => () => void;
  request: TurnRequest;
  /** The clock for its deadlines. */
  clock: TurnClock;
  /** Receives the model's words, message by message. */
  onSaid?: (text: string) => void;
  /** Starts the turn: sends the prompt, or lets the session continue. */
  begin: () => Promise<void>;
  /** Answers of earlier attempts, each followed by a steering text, and which of those the session has processed. */
  before: readonly string[];
  heard: ReadonlySet<number>;
  /** Makes the runtime persist the session. */
  flush: () => Promise<void>;
  /** Subscribes to the session's model calls. */
  watch: (observer: Observer) => () => void;
  /** The model's window in tokens. The runtime is not told, so that it shortens nothing itself. */
  window: () => number;
  /** Describes a failed model call. */
  explain: (failure: WireFailure) => TurnError;
  /** Describes a failure of the runtime itself. */
  troubled: (trouble: RuntimeTrouble) => TurnError;
}

/** How often the runtime retries transient failures. */
const RETRIES = 5;
/** How long the runtime may take to become idle after an error or abort. */
const REST_MS = 2_000;

/** Follows one turn from its start until the session is idle, whatever happens. */
export async function followTurn(deps: TurnDeps): Promise<TurnResult> {
  const { sdk, onDeath, request, clock, onSaid, begin, flush, watch, explain, troubled } = deps;
  const { signal, silenceMs, capMs, steering, beforeCall, onAsked } = request;
  const heard = createListener({ onEvent: request.onEvent, before: deps.before, window: deps.window, explain, troubled });
  let finish: (ending: Ending) => void = () => {};
  const ended = new Promise<Ending>((resolve) => {
    finish = resolve;
  });
  const refuse = (error: unknown) => finish({ kind: "refused", message: messageOf(error) });
  const steerer = createSteerer({ sdk, steering, heard: deps.heard, onFailure: refuse });

  const silence = clock.countdown(silenceMs, () => finish({ kind: "timed out", ms: silenceMs }));
  const listen = () => {
    // A running tool has a deadline of its own.
    if (heard.toolsAtWork() === 0) silence.start();
    else silence.stop();
  };
  const stopListening = sdk.on((event) => {
    if (event.type.startsWith("model.") && !event.type.startsWith("model.call_")) return;
    heard.hear(event);
    if (event.type === "assistant.message" && event.agentId === undefined) onSaid?.(event.data.content);
    listen();
    if (event.type === "user.message" && steerer.took(event.data.messageId ?? event.id)) heard.steered(event.data.delivery);
    if (event.type === "session.idle" && steerer.end()) finish({ kind: "idle" });
    if (event.type === "session.error") setTimeout(() => finish({ kind: "idle" }), REST_MS).unref();
  });
  const over = new AbortController();
  /** The turn's clock pauses while a call waits for a person. */
  const permit = async (): Promise<void> => {
    const goOn = clock.pause();
    try {
      const why = await beforeCall?.(AbortSignal.any([signal, over.signal]), flush);
      if (why !== undefined) finish({ kind: "held back", why });
      if (why !== undefined || over.signal.aborted || signal.aborted)
        throw new WireFailure(why ?? "the turn is over", { status: 400, fault: "held back" });
    } finally {
      goOn();
    }
  };
  const stopWatching = watch({
    ...heard.calls,
    alive: listen,
    ...(beforeCall && { permit }),
    ...(onAsked && { asked: onAsked }),
  });
  const cap = clock.countdown(capMs, () => finish({ kind: "too long", ms: capMs }));
  cap.start();
  const onAbort = () => finish({ kind: "aborted" });
  signal.addEventListener("abort", onAbort, { once: true });
  const stopWaiting = onDeath(() => finish({ kind: "died" }));

  try {
    if (signal.aborted) return heard.result("aborted", turnError("aborted"));
    listen();
    begin().then(steerer.start).catch(refuse);
    const ending = await ended;
    switch (ending.kind) {
      case "idle":
        return heard.settle();
      case "died":
        return heard.result("failed", turnError("runtime_died"));
      case "refused": {
        const error = troubled({ message: ending.message });
        // The runtime may have accepted something that it could not persist.
        if (error.code === "disk_full") await rest(sdk, onDeath);
        return heard.result("failed", error);
      }
      case "aborted":
        await rest(sdk, onDeath);
        return heard.result("aborted", turnError("aborted"));
      case "held back":
        await rest(sdk, onDeath);
        return heard.result("failed", turnError("budget", ending.why));
      case "timed out":
        await rest(sdk, onDeath);
        return heard.result("timed out", heard.failure() ?? turnError("timed_out", `after ${Math.round(ending.ms / 1000)} s`));
      case "too long":
        await rest(sdk, onDeath);
        return heard.result("timed out", heard.failure() ?? turnError("too_long", `${Math.round(ending.ms / 1000)} s`));
    }
  } finally {
    silence.stop();
    cap.stop();
    signal.removeEventListener("abort", onAbort);
    over.abort();
    stopWaiting();
    stopListening();
    stopWatching();
    steerer.stop();
  }
}

type Ending =
  | { kind: "idle" }
  | { kind: "died" }
  | { kind: "aborted" }
  | { kind: "refused"; message: string }
  | { kind: "held back"; why: string }
  | { kind: "timed out" | "too long"; ms: number };

/** Aborts the turn in the runtime and waits until it is idle or gone, up to a limit. */
async function rest(sdk: CopilotSession, onDeath: TurnDeps["onDeath"]): Promise<void> {
  // A failed abort leaves a busy session; the next turn begins with a new handle.
  const aborted = sdk.abort().catch(() => undefined);
  const stop: (() => void)[] = [];
  const idle = new Promise<void>((resolve) => stop.push(sdk.on("session.idle", () => resolve())));
  const died = new Promise<void>((resolve) => stop.push(onDeath(resolve)));
  const tooLong = new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, REST_MS);
    stop.push(() => clearTimeout(timer));
  });
  await Promise.race([Promise.all([aborted, idle]), died, tooLong]);
  for (const each of stop) each();
}

/** Accumulates the events of a turn, from the runtime and from its model calls. */
function createListener(
  deps: Pick<TurnDeps, "before" | "window" | "explain" | "troubled"> & { onEvent: TurnRequest["onEvent"] },
) {
  const { onEvent, before, window, explain, troubled } = deps;
  /** Final answers that were followed by a steering text. */
  const answered = [...before];
  let usage = noUsage();
  let final = "";
  let said = "";
  let spoken = "";
  let error: TurnError | undefined;
  let failure: WireFailure | undefined;
  /** In a row, since a model last answered. */
  let failures = 0;
  let refusal: string | undefined;
  let detail: string | undefined;
  let between = false;
  const served = new Set<string>();
  const tools: string[] = [];
  const working = new Map<string, string>();

  const count = (call: ModelCall): void => {
    usage = addCall(usage, call);
    onEvent?.({ kind: "usage", call });
  };
  const calls: Omit<Observer, "alive"> = {
    served(name) {
      served.add(name);
      failure = undefined;
      failures = 0;
    },
    refused(words) {
      refusal = words;
    },
    failed(met) {
      failure = met;
      failures += 1;
      if (mayPass(met) && failures <= RETRIES) onEvent?.(retryOf(met, failures, explain(met)));
    },
    called: count,
  };
  const hear = (event: SessionEvent): void => {
    if (event.agentId !== undefined) return;
    switch (event.type) {
      case "assistant.message_delta": {
        const text = between && spoken === "" && said !== "" ? `\n\n${event.data.deltaContent}` : event.data.deltaContent;
        between = false;
        spoken += event.data.deltaContent;
        onEvent?.({ kind: "delta", text });
        return;
      }
      case "assistant.reasoning_delta":
        onEvent?.({ kind: "thought", text: event.data.deltaContent });
        return;
      case "assistant.message":
        // An empty final message is no answer, whatever was said before the tools.
        said = event.data.content || said;
        final = event.data.content;
        spoken = "";
        between = true;
        return;
      case "model.call_failure":
        detail = String(event.data.errorMessage ?? "");
        if (spoken !== "") onEvent?.({ kind: "restarted" });
        spoken = "";
        return;
      case "tool.execution_start":
        tools.push(event.data.toolName);
        working.set(event.data.toolCallId, event.data.toolName);
        onEvent?.({ kind: "tool", tool: event.data.toolName, callId: event.data.toolCallId, state: "started" });
        return;
      case "tool.execution_complete": {
        const tool = working.get(event.data.toolCallId) ?? "tool";
        working.delete(event.data.toolCallId);
        onEvent?.({ kind: "tool", tool, callId: event.data.toolCallId, state: event.data.success ? "done" : "failed" });
        return;
      }
      case "session.usage_info":
        onEvent?.({ kind: "context", use: contextOf(event.data, window()) });
        return;
      case "session.error":
        error = troubled({
          statusCode: event.data.statusCode,
          errorType: event.data.errorType,
          message: event.data.message,
          detail,
        });
        return;
    }
  };
  const whole = (last: string) => [...answered, last].filter((part) => part !== "").join("\n\n");
  const result = (outcome: TurnResult["outcome"], why?: TurnError): TurnResult => ({
    outcome,
    text: whole(outcome === "done" ? final : spoken || final || (answered.length > 0 ? "" : said)),
    ...(why && { error: { code: why.code, message: why.message } }),
    ...(why?.remedy !== undefined && { remedy: why.remedy }),
    usage,
    tools,
    served: [...served],
  });
  return {
    hear,
    calls,
    result,
    toolsAtWork: () => working.size,
    /** A steering text arrived: during work, or after a final answer that then stands on its own. */
    steered(delivery: string | undefined) {
      if (delivery === "steering") return;
      if (final !== "") answered.push(final);
      final = "";
    },
    failure: () => failure && explain(failure),
    settle: (): TurnResult => {
      if (error) return result("failed", failure ? explain(failure) : error);
      if (refusal !== undefined) return result("failed", turnError("refused", refusal));
      return final || answered.length > 0 ? result("done") : result("failed", turnError("no_answer", afterTools(tools)));
    },
  };
}

/** A failed attempt and the delay until the next. Advice is given only if all attempts fail. */
function retryOf({ headers }: WireFailure, attempt: number, { message, remedy = "" }: TurnError): TurnEvent {
  const waitS = Number(headers["retry-after"] ?? Number.NaN);
  const why = message.slice(0, message.length - remedy.length).trim();
  return { kind: "retry", attempt, why, waitMs: Number.isFinite(waitS) ? waitS * 1_000 : null };
}

/** Anything unclassified counts as conversation. */
function contextOf(told: Extract<SessionEvent, { type: "session.usage_info" }>["data"], window: number): ContextUse {
  const { tokenLimit, currentTokens, messagesLength, systemTokens = 0, toolDefinitionsTokens = 0 } = told;
  const conversation = told.conversationTokens ?? Math.max(0, currentTokens - systemTokens - toolDefinitionsTokens);
  return {
    ...{ window: Math.min(tokenLimit, window), total: currentTokens, messages: messagesLength },
    ...{ instructions: systemTokens, tools: toolDefinitionsTokens, conversation },
  };
}

/** Tools have had their effects, even if the model said nothing afterwards. */
function afterTools(tools: readonly string[]): string | undefined {
  if (tools.length === 0) return undefined;
  const names = [...new Set(tools)].slice(0, 8).join(", ");
  return `it ended without a word after ${tools.length} tool call${tools.length === 1 ? "" : "s"}: ${names}; what they did stands`;
}
