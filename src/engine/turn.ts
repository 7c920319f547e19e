import type { CopilotSession, SessionEvent } from "@github/copilot-sdk";
import { messageOf } from "../lib/errors.ts";
import type { ContextUse, TurnRequest, TurnResult } from "../protocol/turns.ts";
import { addCall, type ModelCall, noUsage } from "../protocol/usage.ts";
import type { TurnClock } from "./clock.ts";
import { type RuntimeTrouble, type TurnError, turnError } from "./failures.ts";
import { createSteerer } from "./steer.ts";
import { WireFailure } from "./wire/failure.ts";
import type { Observer } from "./wire/observer.ts";

export interface TurnDeps {
  sdk: CopilotSession;
  /** Calls back when the runtime that holds this session has ended, until told to stop. */
  onDeath: (listener: () => void) => () => void;
  request: TurnRequest;
  /** What its deadlines are measured by. */
  clock: TurnClock;
  /** Told what the model says, message by message. */
  onSaid?: (text: string) => void;
  /** Sets the turn going: sends the prompt, or lets the session go on where it stands. */
  begin: () => Promise<void>;
  /** What an earlier life of the turn had answered, each before something more was said, and what of that the session has heard. */
  before: readonly string[];
  heard: ReadonlySet<number>;
  /** Follows the session's model calls until told to stop. */
  watch: (observer: Observer) => () => void;
  /** Puts a failed model call into words. */
  explain: (failure: WireFailure) => TurnError;
  /** Puts the runtime's own trouble into words. */
  troubled: (trouble: RuntimeTrouble) => TurnError;
}

/** How long the runtime gets to come to rest after an error or an abort. */
const REST_MS = 2_000;

/** Follows one turn from its beginning to rest, whatever happens on the way. */
export async function followTurn(deps: TurnDeps): Promise<TurnResult> {
  const { sdk, onDeath, request, clock, onSaid, begin, watch, explain, troubled } = deps;
  const { signal, silenceMs, capMs, steering, beforeCall, onAsked } = request;
  const heard = createListener({ onEvent: request.onEvent, before: deps.before, explain, troubled });
  let finish: (ending: Ending) => void = () => {};
  const ended = new Promise<Ending>((resolve) => {
    finish = resolve;
  });
  const refuse = (error: unknown) => finish({ kind: "refused", message: messageOf(error) });
  const steerer = createSteerer({ sdk, steering, heard: deps.heard, onFailure: refuse });

  const silence = clock.countdown(silenceMs, () => finish({ kind: "timed out", ms: silenceMs }));
  const listen = () => {
    // A tool at work has a deadline of its own.
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
  /** The turn's time stands still while a call waits for a person. */
  const permit = async (): Promise<void> => {
    const goOn = clock.pause();
    try {
      const why = await beforeCall?.(AbortSignal.any([signal, over.signal]));
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
      case "refused":
        return heard.result("failed", troubled({ message: ending.message }));
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

/** Ends the turn in the runtime and waits until it is at rest, or gone, or takes too long over it. */
async function rest(sdk: CopilotSession, onDeath: TurnDeps["onDeath"]): Promise<void> {
  // An abort that fails leaves a session that is not at rest; the next turn begins by making a new handle of it.
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

/** Adds up what is heard of a turn, from the runtime and from the calls to the model themselves. */
function createListener({
  onEvent,
  before,
  explain,
  troubled,
}: Pick<TurnDeps, "before" | "explain" | "troubled"> & { onEvent: TurnRequest["onEvent"] }) {
  /** Last words that were said before something more was said into the turn. */
  const answered = [...before];
  let usage = noUsage();
  let final = "";
  let said = "";
  let spoken = "";
  let error: TurnError | undefined;
  let failure: WireFailure | undefined;
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
    },
    refused(words) {
      refusal = words;
    },
    failed(met) {
      failure = met;
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
      case "assistant.message":
        // An empty last word is no answer, whatever was said before the tools.
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
        onEvent?.({ kind: "context", use: contextOf(event.data) });
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
    /** Something more was said: into the work, or after a last word that then stands by itself. */
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

/** What is not told apart counts as the conversation. */
function contextOf(told: Extract<SessionEvent, { type: "session.usage_info" }>["data"]): ContextUse {
  const { tokenLimit, currentTokens, messagesLength, systemTokens = 0, toolDefinitionsTokens = 0 } = told;
  const conversation = told.conversationTokens ?? Math.max(0, currentTokens - systemTokens - toolDefinitionsTokens);
  return {
    ...{ window: tokenLimit, total: currentTokens, messages: messagesLength },
    ...{ instructions: systemTokens, tools: toolDefinitionsTokens, conversation },
  };
}

/** Tools that ran have done what they did, though the model had no last word for it. */
function afterTools(tools: readonly string[]): string | undefined {
  if (tools.length === 0) return undefined;
  const names = [...new Set(tools)].slice(0, 8).join(", ");
  return `it ended without a word after ${tools.length} tool call${tools.length === 1 ? "" : "s"}: ${names}; what they did stands`;
}
