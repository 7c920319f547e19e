import type { Source } from "../../protocol/messages.ts";

/** A chat, or a topic of one. */
export type Place = Extract<Source, { channel: "telegram" }>;

export function placeOf(chatId: number, threadId: number | undefined): Place {
  return { channel: "telegram", chatId, ...(threadId !== undefined && { threadId }) };
}

export const isPlace = (source: Source): source is Place => source.channel === "telegram";
