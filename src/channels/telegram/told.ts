import type { Message, Update } from "grammy/types";

/** What is kept of somebody who is not served: who it is and whether they asked to be let in, not a word of theirs. */
export interface StrangerTold {
  stranger: { userId: number; chatId: number; asks: boolean; name: string; query?: string };
}
export type Told = Update | StrangerTold;

/** An update as it is kept, and the lane it is handled in. */
export interface Kept {
  lane: string;
  told: Told;
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

/** Begins a conversation, so that what follows has to wait for it. */
const IN_ORDER = ["new", "start"];

/** What is kept of an update; nothing of groups, of channels and of bots. */
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
