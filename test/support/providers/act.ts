/** A tool call by the model. */
export interface Call {
  tool: string;
  args?: unknown;
  /** The arguments as sent over the wire, if they are not JSON. */
  rawArgs?: string;
  /** The id of the call: `null` omits it, `""` sends it empty, and two calls may share one. */
  id?: string | null;
  /** The position sent over the wire: `null` omits it. */
  index?: number | null;
}

/** How the bytes of a stream are sent, independent of their content. */
export interface Wire {
  crlf?: boolean;
  /** Comments sent before every event, as OpenRouter does while the client waits. */
  comments?: readonly string[];
  /** If true, every write ends inside a multi-byte character where possible. */
  splitCharacters?: boolean;
  /** Adds an unknown field with this many bytes to the first piece, to make its line long. */
  padding?: number;
  /** If true, the stream ends without `[DONE]` or `message_stop`. */
  noDone?: boolean;
  /** If true, sends one JSON body even though a stream was requested. */
  oneBody?: boolean;
  /** Milliseconds between two events. */
  gapMs?: number;
}

/** A failure in the middle of an answer. */
export interface Failure {
  message: string;
  code?: string | number;
  /** On the responses wire: an `error` event, or `response.failed`, the default. */
  event?: "error" | "failed";
}

/** An answer of the model, and how it ends. Each piece is sent as one event. */
export interface Answer {
  /** Reasoning, in the provider's own field for it. */
  reason?: string | readonly string[];
  /** Reasoning inside the text, between `<think>` and `</think>`. */
  think?: string | readonly string[];
  say?: string | readonly string[];
  call?: readonly Call[];
  /** If true, the arguments of parallel calls are interleaved. */
  interleave?: boolean;
  /** Refuses, in the provider's own way. */
  refuse?: string;
  /** Further choices after the first, one text each. */
  choices?: readonly string[];
  /** Reaches the output limit after this many pieces. */
  cutAfter?: number;
  /** Overrides the finish reason, in the terms of the wire. */
  finish?: string;
  /** The model name in the answer. */
  as?: string;
  wire?: Wire;
  /** What happens after the last piece, instead of a proper end. */
  ends?: "reset" | "stall" | Failure;
}

/** What the model or its provider does with one accepted request. */
export type Act =
  | Answer
  /** The provider's own errors for rate limits, exhausted credit, and overload. */
  | { busy: "rate" | "quota" | "overloaded"; retryAfter?: number }
  /** An error in the provider's own format. */
  | { status: number; message: string; code?: string; type?: string; headers?: Record<string, string> }
  /** A body of `{"error": "text"}`, even with status 200. */
  | { errorText: string; status?: number }
  /** An HTML page from a proxy in front of the provider. */
  | { html: number }
  /** Never answers. */
  | { hang: true }
  /** Closes the connection before the first byte. */
  | { reset: true };

/** A request in a form common to all wires, for scripts that serve them all. */
export interface Asked {
  wire: "completions" | "responses" | "messages";
  model: string;
  /** The model name in the answer, unless the act names another. */
  servedAs: string;
  stream: boolean;
  system: string;
  /** The last user message. */
  lastUser: string;
  /** Whether the request ends with a tool result. */
  afterTool: boolean;
  tools: string[];
  /** The size of the request by the provider's count. */
  inputTokens: number;
  /** How many tokens the answer may have. */
  outputLimit: number;
  body: Record<string, unknown>;
}

/** Decides what the model does with a request; `index` counts the accepted requests before it. */
export type Script = (asked: Asked, index: number) => Act | Promise<Act>;
