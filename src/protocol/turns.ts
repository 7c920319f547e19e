import { z } from "zod";
import type { CallEnd } from "./calls.ts";
import type { FileEdit } from "./messages.ts";
import type { ModelCall, Spender, Usage } from "./usage.ts";

/**
 * The longest that one tool call may take, with the question to a person before it. The runtime gives a call up after 1,800 s
 * and tells the model only that there was no response; so it is ended before that, with its own words.
 */
export const LONGEST_CALL_MS = 1_770_000;

/** Why a turn did not end well. */
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

/** The end of one turn. A turn never rejects: whoever asked has to be told about a failure anyway. */
export interface TurnResult {
  outcome: "done" | "failed" | "aborted" | "timed out";
  /** The whole answer, or what had been said when the turn was cut short. */
  text: string;
  error?: { code: TurnErrorCode; message: string };
  /** What to do about the error; its message says this too. */
  remedy?: string;
  usage: Usage;
  /** The tools that were called, in order, by name. */
  tools: string[];
  /** The models that answered, by the names the provider gave, each once. */
  served: string[];
  /** The worker on another host that did it, and how often it was begun there; missing where it was done here. */
  worker?: string;
  workerAttempts?: number;
}

/** Where the tokens of a model's window go, as the runtime counts them before it asks. */
export const ContextUse = z
  .object({
    /** The most that the model may be sent. */
    window: z.number().int(),
    total: z.number().int(),
    /** The instructions, with what they say of the wiki, the squads and the skills. */
    instructions: z.number().int(),
    /** What the tools say of themselves. */
    tools: z.number().int(),
    /** What was said, called and answered. */
    conversation: z.number().int(),
    messages: z.number().int(),
  })
  .meta({ id: "ContextUse" });
export type ContextUse = z.infer<typeof ContextUse>;

/** What the model reads of a call, and how that ended where it neither went well nor failed. */
export interface CallAnswer {
  ok: boolean;
  text: string;
  state?: Exclude<CallEnd, "done" | "failed">;
}

/** What a call of a tool tells while it runs. */
export interface CallNews {
  /** What it is about, in a line, without secrets. */
  args?: string;
  /** Its arguments as JSON, without secrets, unless they are long. */
  input?: string;
  /** The next piece of its output, without secrets. */
  output?: string;
  /** Of a command that has ended; null for one that a signal ended. */
  exitCode?: number | null;
  /** What an edit did to a file, without secrets, if it is small. */
  diff?: FileEdit;
}

/** A try that came to nothing, and when the next follows. */
export const Retry = z.object({
  /** Which try it was, from 1. */
  attempt: z.number().int(),
  /** What went wrong, in a sentence. */
  why: z.string(),
  /** How long the provider says to wait; null where nobody says. */
  waitMs: z.number().nullable(),
});
export type Retry = z.infer<typeof Retry>;

/** What is heard of a turn while it runs. */
export type TurnEvent =
  | { kind: "delta"; text: string }
  /** The next piece of what the model thinks before it speaks, where it shows that. */
  | { kind: "thought"; text: string }
  /** The model's answer was cut off and is being asked for again: what was said so far no longer counts. */
  | { kind: "restarted" }
  | ({ kind: "tool"; tool: string; callId: string; state: "started" | "running" | CallEnd } & CallNews)
  /** A try came to nothing and another follows. */
  | ({ kind: "retry" } & Retry)
  | { kind: "usage"; call: ModelCall }
  /** Something that a person should know before the model has answered. */
  | { kind: "notice"; text: string }
  /** What the model is about to be sent, by its parts. */
  | { kind: "context"; use: ContextUse };

/** Something said into a turn while it runs. */
export interface Steer {
  seq: number;
  text: string;
  /** The runtime's id of the prompt that carried it, once it has it. */
  promptId: string | null;
}

/** What is said into one turn, from the side that hears it. */
export interface Steering {
  /** Everything said so far, in order. */
  said(): readonly Steer[];
  /** Calls back whenever more is said, until told to stop. */
  onMore(listener: () => void): () => void;
  accepted(seq: number, promptId: string): void;
  /** Nothing more can be said into this turn. */
  close(): void;
}

export interface TurnRequest {
  /** Whose turn this is: the id of a message, a task or a step. Tool calls are recorded under it. */
  owner: string;
  prompt: string;
  /** The pictures that the prompt names by their marks. */
  pictures?: readonly Uint8Array[];
  /** 1 for the first life of the turn, one more each time a later life takes it up. */
  attempt: number;
  signal: AbortSignal;
  silenceMs: number;
  capMs: number;
  onEvent?: (event: TurnEvent) => void;
  /**
   * Asked before each model call, and may take as long as it likes: the turn's clock stands still meanwhile. The answer, if
   * any, is why the call must not be made, and ends the turn. `flush` has the runtime write down what came before, so that a
   * crash while it takes long loses nothing that was paid for.
   */
  beforeCall?: (signal: AbortSignal, flush: () => Promise<void>) => Promise<string | undefined>;
  /** For whom the model is called, where another than the asker may have to write that down. */
  spender?: Spender;
  steering?: Steering;
  /** Told the runtime's id of the prompt once it has it; kept by the caller, and handed back after a crash. */
  onAccepted?: (promptId: string) => void;
  /** Called whenever a model has been sent a request: for as long as it thinks, whatever else is done is in nobody's way. */
  onAsked?: () => void;
  /**
   * Set when an earlier life began this turn: the id it was told, if it lived to hear one, and the id of the
   * session's turn before it. What the session already holds is then finished, not asked again.
   */
  interrupted?: { promptId?: string | undefined; previousPromptId?: string | undefined };
}

/** One call of a tool, as the engine hands it on. */
export interface ToolInvocation {
  callId: string;
  sessionId: string;
  owner: string;
  /** Grows each time the turn is taken up again: calls recorded under a smaller number were interrupted. */
  attempt: number;
  /** Which calls of an id a session holds the results of. */
  settled?: (callId: string, sessionId: string) => SettledCalls;
  signal: AbortSignal;
  /** Stops the clock of the turn, for as long as a person is waited for, until the answer is called. */
  pause?: () => () => void;
  /** What the model said last before it called. */
  lastWords?: () => string;
  /** Told what the call is about, its output as it comes, and how its command ended. */
  report?: (news: CallNews) => void;
  /** Keeps a picture for the model that called, and answers with what stands for it in the result's text. */
  showPicture?: (bytes: Uint8Array) => Promise<string>;
  /** Set for a call from a model on another host: that host runs whatever touches files or processes, this one never does. */
  elsewhere?: Elsewhere;
  /** Makes the runtime write down that this call was asked for. To be awaited before an effect. */
  flush: () => Promise<void>;
}

/** Another host that a model works on. */
export interface Elsewhere {
  worker: string;
  /** Whether commands can be held in a sandbox there. */
  isSandboxed: boolean;
  /** Makes a call there that may be made. Answers with the text the model reads, and throws as a tool does. */
  run: (args: Record<string, unknown>, signal: AbortSignal, held: { outside: boolean }) => Promise<string>;
}

/** How many results of calls with one id a session holds. */
export interface SettledCalls {
  /** Those that stood there when the turn's prompt was sent: the model was asked anew after them. */
  beforeTurn: number;
  total: number;
}

/** A call that an earlier attempt of a turn made, in words for the model. */
export interface EarlierCall {
  /** Its number in the journal: calls are told in this order. */
  seq: number;
  text: string;
}

/** A tool as the engine offers it to a model: what it is called, what it takes, and who answers. Never rejects. */
export interface EngineTool {
  name: string;
  description: string;
  parameters: Record<string, unknown>;
  /** Left out first where a model's window has no room for all. */
  optional?: true;
  call: (args: unknown, invocation: ToolInvocation) => Promise<CallAnswer>;
  /** The effects that earlier attempts of a turn had with this tool and the turn itself does not show. */
  earlier?: (turn: Required<Pick<ToolInvocation, "owner" | "attempt" | "sessionId" | "settled">>) => EarlierCall[];
  /** Ends what calls of a turn left going, before the turn's result is handed on. */
  turnEnded?: (owner: string) => Promise<void>;
}
