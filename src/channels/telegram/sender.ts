import { setTimeout as sleep } from "node:timers/promises";
import { type Api, InputFile } from "grammy";
import type { Message } from "grammy/types";
import type { Log } from "../../lib/log.ts";
import type { SentPart, TelegramSends } from "../../store/telegram-sends.ts";
import { calling } from "./bot.ts";
import { hashOf, hasRoom, notesOf, optionsOf, type Part, REPEAT, textOf } from "./part.ts";
import type { Place } from "./place.ts";
import { troubleOf } from "./trouble.ts";
import type { Trouble } from "./trouble-words.ts";

export interface SenderDeps {
  api: Api;
  sends: TelegramSends;
  signal: AbortSignal;
  log: Log;
}

const GONE = /message to edit not found|message can't be edited|MESSAGE_ID_INVALID/i;
const NOT_HTML = /can't parse entities/i;
const NO_TOPIC = /message thread not found|TOPIC_(?:DELETED|CLOSED)/i;

/** Sends, edits and deletes single messages, and writes down before and after what is known of them. */
export function createSender({ api, sends, signal, log }: SenderDeps) {
  /** False if the message is gone, so that another has to be sent. */
  async function edit(key: string, to: Place, part: Part, { shown, repeated }: SentPart, messageId: number): Promise<boolean> {
    const hash = hashOf(part);
    if (shown === hash || part.file) return true;
    const place = sends.placeOf(key) ?? to;
    const change = (asHtml: boolean) =>
      calling("editMessageText", () =>
        api.editMessageText(to.chatId, messageId, textOf(part, notesOf(to, place, repeated), asHtml), {
          ...optionsOf(part, asHtml),
          link_preview_options: { is_disabled: true },
        }),
      );
    try {
      await change(true).catch((error: unknown) => {
        if (isRefusal(error, NOT_HTML)) return change(false);
        throw error;
      });
    } catch (error) {
      if (isRefusal(error, GONE)) {
        sends.drop(key, part.name);
        return false;
      }
      if (!isRefusal(error, /message is not modified/i)) throw error;
    }
    sends.sent(key, part.name, messageId, hash);
    return true;
  }

  async function send(key: string, to: Place, part: Part, mayBeThere: boolean): Promise<"sent" | "refused"> {
    // Asked first, so that a server that is down is not sent the same thing over and over.
    if (mayBeThere) await calling("getMe", () => api.getMe());
    if (mayBeThere && !hasRoom(part)) await calling("sendMessage", () => api.sendMessage(to.chatId, `${REPEAT} What follows:`));
    let asHtml = true;
    let place = to;
    for (;;) {
      sends.begin(key, part.name, place, mayBeThere);
      try {
        const notes = notesOf(to, place, mayBeThere);
        const { message_id, message_thread_id } = await calling("sendMessage", () => sendPart(part, place, notes, asHtml));
        sends.sent(key, part.name, message_id, hashOf(part));
        if (place.threadId !== undefined && message_thread_id !== place.threadId) await tellAstray(key, place, part, message_id);
        return "sent";
      } catch (error) {
        const trouble = troubleOf(error);
        if (!trouble || trouble.kind === "unknown") throw error;
        if (!mayBeThere) sends.drop(key, part.name);
        const next = await after(trouble, { asHtml, place });
        if (next === "refused") return next;
        if (next === "later") throw error;
        ({ asHtml, place } = next);
      }
    }
  }

  /** What to try after a call that was certainly not carried out. */
  async function after(
    trouble: Trouble,
    tried: { asHtml: boolean; place: Place },
  ): Promise<"later" | "refused" | { asHtml: boolean; place: Place }> {
    if (trouble.kind === "flood") {
      await sleep(trouble.seconds * 1_000, undefined, { signal });
      return tried;
    }
    if (trouble.kind !== "refused" || trouble.code === 401 || trouble.code === 404 || trouble.code === 409) return "later";
    if (tried.asHtml && NOT_HTML.test(trouble.why)) return { ...tried, asHtml: false };
    const { threadId, ...chat } = tried.place;
    if (threadId !== undefined && NO_TOPIC.test(trouble.why)) {
      log.warn("a topic is gone: what was for it goes to the chat itself", { topic: threadId });
      return { ...tried, place: chat };
    }
    log.warn("Telegram refuses a message", { why: trouble.why });
    return "refused";
  }

  /** Telegram may drop a message for a topic that is gone into the chat itself, and say nothing of it. */
  async function tellAstray(key: string, { chatId, threadId }: Place, part: Part, messageId: number): Promise<void> {
    log.warn("a message for a topic landed elsewhere in the chat: the topic may be gone", { topic: threadId });
    const here: Place = { channel: "telegram", chatId };
    sends.begin(key, part.name, here, false);
    sends.sent(key, part.name, messageId, "");
    await edit(
      key,
      { ...here, ...(threadId !== undefined && { threadId }) },
      part,
      { part: part.name, messageId, shown: "", repeated: false },
      messageId,
    );
  }

  function sendPart(part: Part, { chatId, threadId }: Place, notes: readonly string[], asHtml: boolean): Promise<Message> {
    const options = {
      ...optionsOf(part, asHtml),
      ...(threadId !== undefined && { message_thread_id: threadId }),
      ...(part.silent && { disable_notification: true }),
    };
    const text = textOf(part, notes, asHtml);
    if (part.file)
      return api.sendDocument(chatId, new InputFile(Buffer.from(part.file.content), part.file.name), {
        ...options,
        caption: text,
      });
    return api.sendMessage(chatId, text, { ...options, link_preview_options: { is_disabled: true } });
  }

  async function takeAway(key: string, to: Place, part: string, messageId: number | null): Promise<void> {
    if (messageId !== null)
      await calling("deleteMessage", () => api.deleteMessage(to.chatId, messageId)).catch((error: unknown) => {
        if (troubleOf(error)?.kind !== "refused") throw error;
      });
    sends.drop(key, part);
  }

  return { edit, send, takeAway };
}

function isRefusal(error: unknown, why: RegExp): boolean {
  const trouble = troubleOf(error);
  return trouble?.kind === "refused" && why.test(trouble.why);
}
