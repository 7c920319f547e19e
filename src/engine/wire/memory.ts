import { createHash } from "node:crypto";
import type { Body, Dialect, Item } from "./dialect.ts";
import { type Handover, NO_HANDOVER, saidText, summaryText, withLatest, withoutTime } from "./handover.ts";

/** What replaced a conversation's beginning. */
export interface Memory extends Handover {
  /** How many items it replaces, and the fingerprint of the last one. */
  covers: number;
  mark: string;
  /** How many tokens the conversation may use. */
  room: number;
  /** The items after it in the latest request, and the answer. */
  recent: Item[];
}

/** A session of which nothing was summarised yet. */
export function memoryOf(handover: Handover = NO_HANDOVER): Memory {
  return { ...handover, covers: 0, mark: "", room: 0, recent: [] };
}

/** The request with its conversation's beginning replaced by the memory of it. */
export function withMemory(dialect: Dialect, body: Body, items: readonly Item[], memory: Memory): Body {
  const rest = items.slice(memory.covers);
  const asked = rest.some(({ role }) => role === "user")
    ? undefined
    : items.slice(0, memory.covers).findLast(({ role }) => role === "user");
  const told = [
    "[The beginning of this conversation was too long to keep. This is what it was about.]",
    summaryText(memory.summary),
    ...saidText(memory.said, memory.room),
    ...(asked ? [`[You are still at work on this message of the user:]\n${withoutTime(asked.text)}`] : []),
  ].join("\n\n");
  // Some models require user and assistant messages to alternate.
  const answered = rest[0]?.role === "user" ? [dialect.said("assistant", "I go on from there.")] : [];
  return dialect.withItems(body, [dialect.said("user", told), ...answered, ...rest.map(({ raw }) => raw)]);
}

/** A shortened conversation, for a session that begins again. */
export function handoverOf({ summary, said, latest, recent }: Memory): Handover {
  return withLatest(
    { summary, said, latest },
    recent.map(({ role, text }) => ({ role, text: withoutTime(text) })),
  );
}

/** A fingerprint of an item, so that a replacement is noticed. */
export function markOf({ raw }: Item): string {
  return createHash("sha256").update(JSON.stringify(raw)).digest("hex");
}

/** A request with a text removed from its system message. */
export function withoutText(dialect: Dialect, body: Body, text: string): Body {
  if (text === "") return body;
  const items = dialect.items(body).map(({ raw }) => raw);
  return dialect.withItems(cut(dialect.withItems(body, []), text) as Body, items);
}

function cut(value: unknown, text: string): unknown {
  if (typeof value === "string") return value.replace(text, "");
  if (Array.isArray(value)) return value.map((part) => cut(part, text));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, cut(part, text)]));
}
