import { setTimeout as sleep } from "node:timers/promises";
import { type Api, InputFile } from "grammy";
import type { Message } from "grammy/types";
import type { Log } from "../../lib/log.ts";
import type { SentPart, TelegramSends } from "../../store/telegram-sends.ts";
import { calling } from "./bot.ts";
import { hashOf, hasRoom, notesOf, optionsOf, type Part, REPEAT, textOf } from "./part.ts";
import { type Place, placeOf } from "./place.ts";
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
  /** `gone`: there is no such message any more, so that another has to be sent. */
  async function edit(key: string, to: Place, part: Part, { shown, repeated }: SentPart, messageId: number): Promise<Edited> {
    const hash = hashOf(part);
    if (shown === hash || part.file) return "shown";
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
        return "gone";
      }
      const trouble = troubleOf(error);
      if (trouble?.kind !== "refused" || isAboutBot(trouble.code)) throw error;
      if (!/message is not modified/i.test(trouble.why)) {
        log.warn("Telegram refuses to change a message", { why: trouble.why });
        return "refused";
      }
    }
    sends.sent(key, part.name, messageId, hash);
    return "shown";
  }

  async function send(key: string, to: Place, part: Part, mayBeThere: boolean): Promise<"sent" | "refused"> {
    // Asked first, so that a server that is down is not sent the same thing over and over.
    if (mayBeThere) await calling("getMe", () => api.getMe());
    if (mayBeThere && !hasRoom(part)) await calling("sendMessage", () => api.sendMessage(to.chatId, REPEAT, threadIn(to)));
    let asHtml = true;
    let place = to;
    let landed: { id: number; thread: number | undefined };
    for (;;) {
      sends.begin(key, part.name, place, mayBeThere);
      try {
        const notes = notesOf(to, place, mayBeThere);
        const { message_id, message_thread_id } = await calling("sendMessage", () => sendPart(api, part, place, notes, asHtml));
        sends.sent(key, part.name, message_id, hashOf(part));
        landed = { id: message_id, thread: message_thread_id };
        break;
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
    if (place.threadId !== undefined && landed.thread !== place.threadId)
      await tellAstray(key, place, part, { messageId: landed.id, repeated: mayBeThere });
    return "sent";
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
    if (trouble.kind !== "refused" || isAboutBot(trouble.code)) return "later";
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
  async function tellAstray(
    key: string,
    { chatId, threadId }: Place,
    part: Part,
    { messageId, repeated }: { messageId: number; repeated: boolean },
  ): Promise<void> {
    log.warn("a message for a topic landed elsewhere in the chat: the topic may be gone", { topic: threadId });
    sends.begin(key, part.name, placeOf(chatId, undefined), repeated);
    sends.sent(key, part.name, messageId, "");
    await edit(key, placeOf(chatId, threadId), part, { part: part.name, messageId, shown: "", repeated }, messageId);
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

function sendPart(
  api: Api,
  part: Part,
  { chatId, threadId }: Place,
  notes: readonly string[],
  asHtml: boolean,
): Promise<Message> {
  const options = {
    ...optionsOf(part, asHtml),
    ...threadIn({ threadId }),
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

type Edited = "shown" | "gone" | "refused";

const threadIn = ({ threadId }: { threadId?: number | undefined }) =>
  threadId === undefined ? {} : { message_thread_id: threadId };

/** Whether a refusal is about the bot and its token, and none about the message. */
const isAboutBot = (code: number) => code === 401 || code === 404 || code === 409;

function isRefusal(error: unknown, why: RegExp): boolean {
  const trouble = troubleOf(error);
  return trouble?.kind === "refused" && why.test(trouble.why);
}
