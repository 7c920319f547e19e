import type { PictureType } from "../../lib/file-type.ts";
import { recordIn, textIn } from "./fields.ts";
import type { StreamEvent } from "./stream.ts";

/** The three wire formats of providers. */
export type Wire = "completions" | "responses" | "messages";

/** A request as the runtime made it. */
export interface Body {
  model: string;
  [name: string]: unknown;
}

/** The tokens of a model call, as the provider counts them. */
export interface Tokens {
  input: number;
  output: number;
  cached: number;
}

/** One item of a conversation: a message, a call or a result. */
export interface Item {
  role: "user" | "assistant" | "tool";
  /** In words, for a summary. */
  text: string;
  /** As it is in the request. */
  raw: unknown;
}

/** How one answer ended. */
export interface Ending {
  /** Cut in the middle of text by the output limit. */
  cut: boolean;
  /** The provider's words, where it declined to answer. */
  refusal: string | undefined;
  /** The model that answered, by the provider's name. */
  model: string | undefined;
  tokens: Tokens;
}

/** Assembles one answer from its first stream and those that continue it. */
export interface Assembler {
  /** The output for the runtime. Throws a `WireFailure` for an error inside the stream. */
  take(event: StreamEvent): string[];
  /** Whether the provider ended this stream: some leave the connection open afterwards. */
  isOver(): boolean;
  /** Called at the end of each stream. Throws a `WireFailure` if the stream broke off. */
  ended(): Ending;
  /** The metadata of the current stream so far, for one that breaks off. */
  soFar(): Pick<Ending, "model" | "tokens">;
  /** The text so far. */
  text(): string;
  /** The end of the whole answer, with a final remark of ours. */
  finish(remark?: string): string[];
}

/** A picture in the form that providers accept. */
export interface Picture {
  id: string;
  type: PictureType;
  /** In base64. */
  data: string;
}

/** Additions to an item of a request. */
export interface Illustration {
  pictures: readonly Picture[];
  /** Text beside them; may be empty. */
  note: string;
}

/** What every wire format can express, in the form of one of them. */
export interface Dialect {
  assemble(): Assembler;
  /** Turns an unstreamed answer to a streamed request into events; undefined if the runtime can read it as it is. */
  unstreamed(answer: Record<string, unknown>): StreamEvent[] | undefined;
  /** The conversation of a request, without its system message. */
  items(body: Body): Item[];
  withItems(body: Body, raw: readonly unknown[]): Body;
  said(role: "user" | "assistant", text: string): unknown;
  /** Shortens the text of a tool's result; returns anything else unchanged. */
  shortened(raw: unknown, cut: (text: string) => string): unknown;
  /** Whether an item can hold pictures itself; tool results often take only text. */
  canHoldPictures(raw: unknown): boolean;
  /** Such an item with pictures and a sentence added. */
  illustrated(raw: unknown, parts: Illustration): unknown;
  /** A separate request to the same model, without history. The caller leaves out the tools. */
  question(body: Body, system: string, text: string): Body;
}

/** Asks a model to continue an answer that was cut by its output limit. */
export const GO_ON =
  "Your answer was cut by the output limit. Continue from where you left off, exactly at the next character: repeat nothing, add no remark.";

export function noTokens(): Tokens {
  return { input: 0, output: 0, cached: 0 };
}

/** A tool call in the words of a summary. */
export function inWords(tool: unknown, args: unknown): string {
  return `[calls ${textIn(tool)} ${textIn(args)}]`;
}

export function withoutTools(body: Body): Body {
  const { tools, tool_choice, parallel_tool_calls, ...rest } = body;
  return rest as Body;
}

/** Whether it belongs to the conversation, not to the system message. */
export function isSpoken(item: unknown): boolean {
  const { role } = recordIn(item);
  return role !== "system" && role !== "developer";
}
