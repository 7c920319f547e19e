import type { Source } from "../../protocol/messages.ts";

/** A chat, or one of its topics. */
export type Chat = Extract<Source, { channel: "telegram" }>;

export function placeOf(chatId: number, threadId: number | undefined): Chat {
  return { channel: "telegram", chatId, ...(threadId !== undefined && { threadId }) };
}

export const isChat = (source: Source): source is Chat => source.channel === "telegram";
