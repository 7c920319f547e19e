import type { Message, Update } from "grammy/types";

/** What is stored of a user who is not served: their identity and whether they asked to pair, but none of their text. */
export interface StrangerUpdate {
  stranger: { userId: number; chatId: number; asks: boolean; name: string; query?: string };
}
export type IncomingUpdate = Update | StrangerUpdate;

/** An update as it is stored, and its lane. */
export interface Kept {
  lane: string;
  told: IncomingUpdate;
}

const COMMAND = /^\/([a-z]+)(?:@\w+)?(?:\s+([\s\S]*))?$/i;

export interface Command {
  name: string;
  rest: string;
}

export function commandOf(message: Pick<Message, "text">): Command | undefined {
  const [, name, rest = ""] = COMMAND.exec(message.text?.trim() ?? "") ?? [];
  return name === undefined ? undefined : { name: name.toLowerCase(), rest: rest.trim() };
}

/** They begin a conversation, so later messages must wait for them. */
const IN_ORDER = ["new", "start"];

/** What is stored of an update; nothing from groups, channels or bots. */
export function keptOf(update: Update, serves: (userId: number) => boolean): Kept | undefined {
  const message = update.message ?? update.edited_message;
  const query = update.callback_query;
  const from = message?.from ?? query?.from;
  const chat = message?.chat ?? query?.message?.chat;
  if (!from || from.is_bot || !chat || chat.type !== "private") return undefined;
  if (!serves(from.id)) {
    const asks = update.message !== undefined && commandOf(update.message)?.name === "start";
    const name = asks ? [from.first_name, from.last_name].filter(Boolean).join(" ") : "";
    const stranger = { userId: from.id, chatId: chat.id, asks, name, ...(query && { query: query.id }) };
    return { lane: "strangers", told: { stranger } };
  }
  const command = update.message && commandOf(update.message);
  const isAtOnce = query !== undefined || (command !== undefined && !IN_ORDER.includes(command.name));
  return { lane: `${isAtOnce ? "now" : "chat"}:${chat.id}`, told: update };
}
