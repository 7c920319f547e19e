/** A call of a tool by the model. */
export interface Call {
  tool: string;
  args?: unknown;
  /** The arguments as they go over the wire, for those that are not JSON. */
  rawArgs?: string;
  /** The id of the call: `null` leaves it out, `""` sends it empty, and two calls may share one. */
  id?: string | null;
  /** The position on the wire: `null` leaves it out. */
  index?: number | null;
}

/** How the bytes of a stream look, whatever is in them. */
export interface Wire {
  crlf?: boolean;
  /** Comments, sent before every event as OpenRouter does while one waits. */
  comments?: readonly string[];
  /** Every write ends inside a character, where there is one of several bytes. */
  splitCharacters?: boolean;
  /** An unknown field of this many bytes in the first piece, so that its line is long. */
  padding?: number;
  /** The stream ends without its last word: `[DONE]`, or `message_stop`. */
  noDone?: boolean;
  /** One JSON body, although a stream was asked for. */
  oneBody?: boolean;
  /** Milliseconds between two events. */
  gapMs?: number;
}

/** A failure in the middle of an answer. */
export interface Failure {
  message: string;
  code?: string | number;
  /** On the responses wire: an `error` event, or a `response.failed`, which is usual. */
  event?: "error" | "failed";
}

/** A word of the model, and how it ends. Pieces are sent one event each. */
export interface Answer {
  /** Reasoning, in the field that the provider has for it. */
  reason?: string | readonly string[];
  /** Reasoning within the text, between `<think>` and `</think>`. */
  think?: string | readonly string[];
  say?: string | readonly string[];
  call?: readonly Call[];
  /** Arguments of parallel calls come in turns. */
  interleave?: boolean;
  /** Says no, in the provider's own way. */
  refuse?: string;
  /** Further choices beside the first, one text each. */
  choices?: readonly string[];
  /** The output limit is reached after this many pieces. */
  cutAfter?: number;
  /** Overrides why the answer ended, in the words of the wire. */
  finish?: string;
  /** The name under which the model answers. */
  as?: string;
  wire?: Wire;
  /** What happens after the last piece, instead of a proper end. */
  ends?: "reset" | "stall" | Failure;
}

/** What the model, or the house it lives in, does with one accepted request. */
export type Act =
  | Answer
  /** The provider's own words for too many requests, no money left, and too much work. */
  | { busy: "rate" | "quota" | "overloaded"; retryAfter?: number }
  /** An error in the provider's own shape. */
  | { status: number; message: string; code?: string; type?: string; headers?: Record<string, string> }
  /** A body of `{"error": "text"}`, also with a 200. */
  | { errorText: string; status?: number }
  /** A page of a proxy in front of the provider. */
  | { html: number }
  /** Never answers. */
  | { hang: true }
  /** Cuts the connection before the first byte. */
  | { reset: true };

/** A request as every wire has it, for scripts that serve them all. */
export interface Asked {
  wire: "completions" | "responses" | "messages";
  model: string;
  /** The name under which the provider answers, when the act names none. */
  servedAs: string;
  stream: boolean;
  system: string;
  /** The last thing the user said. */
  lastUser: string;
  /** Whether the request ends with the result of a tool. */
  afterTool: boolean;
  tools: string[];
  /** What the request costs by the provider's count. */
  inputTokens: number;
  /** How much may be said. */
  outputLimit: number;
  body: Record<string, unknown>;
}

/** Decides what the model does with a request; `index` counts the accepted requests before it. */
export type Script = (asked: Asked, index: number) => Act | Promise<Act>;
