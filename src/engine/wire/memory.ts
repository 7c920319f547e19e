import { createHash } from "node:crypto";
import { clipToTokens, estimateTokens } from "../../lib/estimate-tokens.ts";
import { indented, oneLine } from "../../lib/quoted.ts";
import type { Body, Dialect, Item } from "./dialect.ts";

/** What a conversation's beginning was replaced by. */
export interface Memory {
  /** How many items of the conversation it stands for, and the mark of the last of them. */
  covers: number;
  mark: string;
  summary: string;
  /** The user's own words from that time: a poor summary must not lose them. */
  said: string[];
  /** How many tokens those words may cost. */
  saidRoom: number;
  /** What followed it in the latest request, and the answer. */
  recent: Item[];
}

/** The request with the beginning of its conversation replaced by what is remembered of it. */
export function withMemory(dialect: Dialect, body: Body, items: readonly Item[], memory: Memory): Body {
  const rest = items.slice(memory.covers);
  const asked = rest.some(({ role }) => role === "user")
    ? undefined
    : items.slice(0, memory.covers).findLast(({ role }) => role === "user");
  const told = [
    "[The beginning of this conversation was too long to keep. This is what it was about.]",
    tell(memory),
    ...(asked ? [`[You are still at work on this message of the user:]\n${withoutTime(asked.text)}`] : []),
  ].join("\n\n");
  // Some models want users and assistants to take turns.
  const answered = rest[0]?.role === "user" ? [dialect.said("assistant", "I go on from there.")] : [];
  return dialect.withItems(body, [dialect.said("user", told), ...answered, ...rest.map(({ raw }) => raw)]);
}

/** A conversation that was shortened, in words for a session that begins anew. */
export function handoverOf(memory: Memory): string {
  const recent = memory.recent.map((item) => clipToTokens(lineOf(item), 300)).join("\n");
  return `${tell(memory)}\n\nThe latest, word for word:\n${lastOf(recent, Math.min(2_000, Math.floor(memory.saidRoom * 2.5)))}`;
}

/** One item of a conversation, as a line for a summary. */
export function lineOf({ role, text }: Item): string {
  const who = { user: "User", assistant: "Assistant", tool: "Result" }[role];
  const most = role === "tool" ? 1_500 : 6_000;
  const words = withoutTime(text);
  return `${who}: ${indented(words.length > most ? `${words.slice(0, most).toWellFormed()}…` : words).trimStart()}`;
}

/** What a user said, on one line. */
export function saidLine(text: string): string {
  return oneLine(withoutTime(text), 240);
}

/** Identifies an item, so that another in its place is noticed. */
export function markOf({ raw }: Item): string {
  return createHash("sha256").update(JSON.stringify(raw)).digest("hex");
}

function tell({ summary, said, saidRoom }: Memory): string {
  const words = said.map((line) => `- ${line}`).join("\n");
  return `Summary:\n${indented(summary)}${words ? `\n\nThe user's own words in that time, shortened:\n${clipToTokens(words, saidRoom)}` : ""}`;
}

/** The last part of a text that fits, from the beginning of a line. */
function lastOf(text: string, tokens: number): string {
  if (estimateTokens(text) <= tokens) return text;
  const cut = text.slice(-Math.floor(tokens * 3.6));
  return cut.slice(cut.indexOf("\n") + 1).toWellFormed();
}

/** What was said, without the time that the runtime puts before it. */
function withoutTime(text: string): string {
  return text.replace(/^<current_datetime>[^<]*<\/current_datetime>\s*/, "");
}
