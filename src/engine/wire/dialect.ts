import { recordIn, textIn } from "./fields.ts";
import type { StreamEvent } from "./stream.ts";

/** The three ways in which providers are talked to. */
export type Wire = "completions" | "responses" | "messages";

/** A request as the runtime made it. */
export interface Body {
  model: string;
  [name: string]: unknown;
}

/** What a model call cost, in the provider's own count. */
export interface Tokens {
  input: number;
  output: number;
  cached: number;
}

/** Something said, done or answered in a conversation. */
export interface Item {
  role: "user" | "assistant" | "tool";
  /** In words, for a summary. */
  text: string;
  /** As it stands in the request. */
  raw: unknown;
}

/** How one answer ended. */
export interface Ending {
  /** Cut by the limit on what a model may say at once, in the middle of text. */
  cut: boolean;
  /** The provider's words, where it declined to answer. */
  refusal: string | undefined;
  /** The model that answered, by the provider's name for it. */
  model: string | undefined;
  tokens: Tokens;
}

/** Puts one answer together from one or more streams: the first, and those that continue it. */
export interface Assembler {
  /** What goes on to the runtime now. Throws a `WireFailure` for an error inside the stream. */
  take(event: StreamEvent): string[];
  /** Whether the provider said that this stream is over: some leave the connection open after it. */
  isOver(): boolean;
  /** Called at the end of each stream. Throws a `WireFailure` if the stream broke off. */
  ended(): Ending;
  /** What the stream that comes in has said of itself so far, for one that breaks off. */
  soFar(): Pick<Ending, "model" | "tokens">;
  /** The text so far. */
  text(): string;
  /** The end of the whole answer, with a last remark of ours. */
  finish(remark?: string): string[];
}

/** How one wire says what they all say. */
export interface Dialect {
  assemble(): Assembler;
  /** An answer that came in one piece although a stream was asked for, as events; undefined if the runtime can read it as it is. */
  unstreamed(answer: Record<string, unknown>): StreamEvent[] | undefined;
  /** The conversation of a request, without its system message. */
  items(body: Body): Item[];
  withItems(body: Body, raw: readonly unknown[]): Body;
  said(role: "user" | "assistant", text: string): unknown;
  /** A tool's result with its text made shorter; anything else as it is. */
  shortened(raw: unknown, cut: (text: string) => string): unknown;
  /** A request of its own to the same model, without history. Tools are left out by whoever sends it. */
  question(body: Body, system: string, text: string): Body;
}

/** Asks a model to go on with an answer that its output limit cut. */
export const GO_ON =
  "Your answer was cut by the output limit. Continue from where you left off, exactly at the next character: repeat nothing, add no remark.";

export function noTokens(): Tokens {
  return { input: 0, output: 0, cached: 0 };
}

/** A tool call as a summary tells it. */
export function inWords(tool: unknown, args: unknown): string {
  return `[calls ${textIn(tool)} ${textIn(args)}]`;
}

export function withoutTools(body: Body): Body {
  const { tools, tool_choice, parallel_tool_calls, ...rest } = body;
  return rest as Body;
}

/** Whether it is part of the conversation, not of the system message. */
export function isSpoken(item: unknown): boolean {
  const { role } = recordIn(item);
  return role !== "system" && role !== "developer";
}
