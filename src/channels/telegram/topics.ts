import type { Api } from "grammy";
import type { Message } from "grammy/types";
import { Conversation } from "../../protocol/messages.ts";
import type { Messages } from "../../store/messages.ts";
import type { TelegramChats } from "../../store/telegram-chats.ts";
import { calling } from "./bot.ts";
import { type Chat, placeOf } from "./chat.ts";

/** The topic that cannot be deleted; its messages are sent without a thread id. */
const GENERAL = 1;

export interface TopicsDeps {
  api: Api;
  chats: TelegramChats;
  messages: Pick<Messages, "list">;
  /** Whether the bot has topics. */
  hasTopics: () => boolean;
  /** Asks Telegram whether the bot still has topics. */
  look: () => Promise<void>;
}

/** Maps chats and topics to conversations. */
export function createTopics({ api, chats, messages, hasTopics, look }: TopicsDeps) {
  const isNew = (name: string) => messages.list(name, 1).length === 0;
  function nextName(): string {
    for (let count = 2; ; count += 1) if (isNew(`chat-${count}`)) return `chat-${count}`;
  }
  return {
    placeOf({
      chat,
      message_thread_id,
      is_topic_message,
    }: Pick<Message, "chat" | "message_thread_id" | "is_topic_message">): Chat {
      const isTopic = message_thread_id !== undefined && message_thread_id !== GENERAL && (is_topic_message || hasTopics());
      return placeOf(chat.id, isTopic ? message_thread_id : undefined);
    },
    conversationOf: ({ chatId, threadId }: Chat): string =>
      threadId === undefined ? chats.conversationOf(chatId) : `topic-${threadId}`,
    /** Begins another conversation, or returns to one by its name; undefined if the name is invalid. */
    async begin({ chatId }: Chat, wanted: string): Promise<{ place: Chat; conversation: string } | undefined> {
      await look();
      if (hasTopics()) {
        const title = wanted.slice(0, 128) || `Conversation ${new Date().toISOString().slice(0, 16).replace("T", " ")}`;
        const { message_thread_id } = await calling("createForumTopic", () => api.createForumTopic(chatId, title));
        return { place: placeOf(chatId, message_thread_id), conversation: `topic-${message_thread_id}` };
      }
      const name = wanted === "" ? nextName() : wanted.replace(/\s+/g, "-");
      if (!Conversation.safeParse(name).success) return undefined;
      chats.switchTo(chatId, name);
      return { place: placeOf(chatId, undefined), conversation: name };
    },
  };
}
export type Topics = ReturnType<typeof createTopics>;
