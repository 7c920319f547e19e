import type { Api } from "grammy";
import type { Message as TelegramMessage } from "grammy/types";
import { messageOf } from "../../lib/errors.ts";
import type { Log } from "../../lib/log.ts";
import { replyKey } from "../../orchestrator/outbox.ts";
import type { Steering } from "../../orchestrator/steering.ts";
import type { Messages } from "../../store/messages.ts";
import type { TelegramSends } from "../../store/telegram-sends.ts";
import type { StoredUpdate, TelegramUpdates } from "../../store/telegram-updates.ts";
import { calling } from "./bot.ts";
import { toolsKey } from "./live.ts";

export interface InterjectionsDeps {
  api: Api;
  messages: Pick<Messages, "open" | "findByKey">;
  sends: Pick<TelegramSends, "of">;
  updates: Pick<TelegramUpdates, "doneWith">;
  steering: Pick<Steering, "say">;
  log: Log;
}

/** A message, and the key it would have in the inbox. */
export interface Said {
  message: TelegramMessage;
  keyOf: (message: Pick<TelegramMessage, "chat" | "message_id">) => string;
  conversation: string;
  update: StoredUpdate;
}

/** Steers a running turn: by a reply to the message being answered, or to its growing answer. */
export function createInterjections({ api, messages, sends, updates, steering, log }: InterjectionsDeps) {
  function addressee({ message, keyOf, conversation }: Said): string | undefined {
    const about = message.reply_to_message;
    const running = messages.open().find((each) => each.conversation === conversation && each.status === "running");
    if (!about || !running) return undefined;
    const shown = [replyKey(running.id), toolsKey(running.id)].flatMap(sends.of);
    const isAnswer = shown.some(({ messageId }) => messageId === about.message_id);
    return isAnswer || messages.findByKey(keyOf(about))?.id === running.id ? running.id : undefined;
  }

  return {
    /** Adds the text to the turn, once; false if it is an ordinary message. */
    async take(said: Said): Promise<boolean> {
      const { message, update } = said;
      const text = message.text?.trim() ?? "";
      const id = text === "" ? undefined : addressee(said);
      if (id === undefined || !updates.doneWith([update], () => steering.say(id, text))) return false;
      await calling("setMessageReaction", () =>
        api.setMessageReaction(message.chat.id, message.message_id, [{ type: "emoji", emoji: "👀" }]),
      ).catch((error: unknown) => log.debug("that it was heard is not shown", { error: messageOf(error) }));
      return true;
    },
  };
}
export type Interjections = ReturnType<typeof createInterjections>;
