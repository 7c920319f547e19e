import { z } from "zod";
import type { CallEnd } from "./calls.ts";
import type { FileEdit } from "./messages.ts";
import type { ModelCall, Spender, Usage } from "./usage.ts";

/**
 * The longest that one tool call may take, including its approval. The runtime aborts a call after 1,800 s with a meaningless
 * message to the model, so IO ends it earlier with its own.
 */
export const LONGEST_CALL_MS = 1_770_000;

/** Why a turn failed. */
export type TurnErrorCode =
  | "runtime_died"
  | "runtime_failed"
  | "disk_full"
  | "session_gone"
  | "internal"
  | "rate_limited"
  | "unauthorized"
  | "unpaid"
  | "no_model"
  | "no_chat"
  | "no_tools"
  | "too_large"
  | "refused"
  | "bad_request"
  | "wrong_address"
  | "failing"
  | "unreachable"
  | "no_answer"
  | "timed_out"
  | "too_long"
  | "budget"
  | "aborted";

/** The end of one turn. A turn never rejects: its caller must report a failure anyway. */
export interface TurnResult {
  outcome: "done" | "failed" | "aborted" | "timed out";
  /** The whole answer, or the text before the turn was cut off. */
  text: string;
  error?: { code: TurnErrorCode; message: string };
  /** What to do about the error; its message says this too. */
  remedy?: string;
  usage: Usage;
  /** The names of the called tools, in order. */
  tools: string[];
  /** The models that answered, by their provider's names, each once. */
  served: string[];
  /** The worker that did it, and how often it was started on workers; missing if it was done here. */
  worker?: string;
  workerAttempts?: number;
}

/** How the tokens of a model's window are used, as the runtime counts them before a request. */
export const ContextUse = z
  .object({
    /** The most that the model accepts. */
    window: z.number().int(),
    total: z.number().int(),
    /** The system message, including the wiki, the squads and the skills. */
    instructions: z.number().int(),
    /** The descriptions of the tools. */
    tools: z.number().int(),
    /** Messages, calls and results. */
    conversation: z.number().int(),
    messages: z.number().int(),
  })
  .meta({ id: "ContextUse" });
export type ContextUse = z.infer<typeof ContextUse>;

/** The result of a call for the model; `state` is set if it neither succeeded nor failed. */
export interface CallAnswer {
  ok: boolean;
  text: string;
  state?: Exclude<CallEnd, "done" | "failed">;
}

/** News of a tool call while it runs. */
export interface CallNews {
  /** A one-line summary of its arguments, redacted. */
  args?: string;
  /** Its arguments as redacted JSON, unless they are long. */
  input?: string;
  /** The next piece of its output, redacted. */
  output?: string;
  /** Set when a command has ended; null if a signal ended it. */
  exitCode?: number | null;
  /** The effect of an edit on a file, redacted, if it is small. */
  diff?: FileEdit;
}

/** A failed try, and when the next follows. */
export const Retry = z.object({
  /** The number of the try, from 1. */
  attempt: z.number().int(),
  /** What went wrong, in a sentence. */
  why: z.string(),
  /** How long the provider asks to wait; null if it does not say. */
  waitMs: z.number().nullable(),
});
export type Retry = z.infer<typeof Retry>;

/** An event of a running turn. */
export type TurnEvent =
  | { kind: "delta"; text: string }
  /** The next piece of the model's thoughts, if it shows them. */
  | { kind: "thought"; text: string }
  /** The model's answer was cut off and is requested again: the text so far no longer counts. */
  | { kind: "restarted" }
  | ({ kind: "tool"; tool: string; callId: string; state: "started" | "running" | CallEnd } & CallNews)
  /** A try failed and another follows. */
  | ({ kind: "retry" } & Retry)
  | { kind: "usage"; call: ModelCall }
  /** Something that a person should know before the model has answered. */
  | { kind: "notice"; text: string }
  /** The parts of the next request to the model. */
  | { kind: "context"; use: ContextUse };

/** Text added to a running turn. */
export interface Steer {
  seq: number;
  text: string;
  /** The runtime's id of the prompt that carried it, once known. */
  promptId: string | null;
}

/** The texts added to one turn, as its engine reads them. */
export interface Steering {
  /** All texts so far, in order. */
  said(): readonly Steer[];
  /** Calls the listener whenever there is more; the returned function unsubscribes it. */
  onMore(listener: () => void): () => void;
  accepted(seq: number, promptId: string): void;
  /** Accepts no more texts for this turn. */
  close(): void;
}

export interface TurnRequest {
  /** The owner of the turn: the id of a message, task or step. Its tool calls are recorded under it. */
  owner: string;
  prompt: string;
  /** The pictures that the prompt refers to by their marks. */
  pictures?: readonly Uint8Array[];
  /** 1 when the turn first runs; one more each time it is resumed. */
  attempt: number;
  signal: AbortSignal;
  silenceMs: number;
  capMs: number;
  onEvent?: (event: TurnEvent) => void;
  /**
   * Asked before each model call, for as long as it takes, while the turn's clock is paused. A returned string is the reason not
   * to make the call, and ends the turn. `flush` makes the runtime store what came before, so that a crash during a long wait
   * loses nothing that was paid for.
   */
  beforeCall?: (signal: AbortSignal, flush: () => Promise<void>) => Promise<string | undefined>;
  /** Who pays for the model calls, if another process than the caller may have to record them. */
  spender?: Spender;
  steering?: Steering;
  /** Called with the runtime's id of the prompt; the caller stores it and passes it back after a crash. */
  onAccepted?: (promptId: string) => void;
  /** Called whenever a request was sent to a model: while it thinks, other work delays nobody. */
  onAsked?: () => void;
  /**
   * Set if the turn was started before a crash: the prompt's id, if it was known, and the id of the session's previous turn. What
   * the session already contains is then finished, not asked again.
   */
  interrupted?: { promptId?: string | undefined; previousPromptId?: string | undefined };
}

/** A tool call as the engine passes it on. */
export interface ToolInvocation {
  callId: string;
  sessionId: string;
  owner: string;
  /** Grows each time the turn is resumed: calls recorded under a smaller number were interrupted. */
  attempt: number;
  /** How many results of calls with an id a session contains. */
  settled?: (callId: string, sessionId: string) => SettledCalls;
  signal: AbortSignal;
  /** Pauses the turn's clock while a person is asked, until the returned function is called. */
  pause?: () => () => void;
  /** What the model said last before the call. */
  lastWords?: () => string;
  /** Receives the call's summary, its output as it arrives, and how its command ended. */
  report?: (news: CallNews) => void;
  /** Stores a picture for the calling model; returns the mark that represents it in the result's text. */
  showPicture?: (bytes: Uint8Array) => Promise<string>;
  /** Set for a call of a model on a worker: the worker, never this host, runs what touches files or processes. */
  elsewhere?: Elsewhere;
  /** Makes the runtime store that this call was requested. Await it before an effect. */
  flush: () => Promise<void>;
}

/** The worker that a model runs on. */
export interface Elsewhere {
  worker: string;
  /** Whether the worker can run commands in a sandbox. */
  isSandboxed: boolean;
  /** Runs an approved call there. Returns the text for the model, and throws as a tool does. */
  run: (args: Record<string, unknown>, signal: AbortSignal, held: { outside: boolean }) => Promise<string>;
}

/** How many results of calls with one id a session contains. */
export interface SettledCalls {
  /** Those that existed when the turn's prompt was sent: the model was asked again after them. */
  beforeTurn: number;
  total: number;
}

/** A call of an earlier attempt of a turn, described for the model. */
export interface EarlierCall {
  /** Its number in the journal, which determines the order. */
  seq: number;
  text: string;
}

/** A tool as the engine offers it to a model. Never rejects. */
export interface EngineTool {
  name: string;
  description: string;
  parameters: Record<string, unknown>;
  /** Omitted first if a model's window is too small for all tools. */
  optional?: true;
  call: (args: unknown, invocation: ToolInvocation) => Promise<CallAnswer>;
  /** The effects of this tool in earlier attempts of a turn that the turn itself does not show. */
  earlier?: (turn: Required<Pick<ToolInvocation, "owner" | "attempt" | "sessionId" | "settled">>) => EarlierCall[];
  /** Ends what a turn's calls left running, before the turn's result is returned. */
  turnEnded?: (owner: string) => Promise<void>;
}
