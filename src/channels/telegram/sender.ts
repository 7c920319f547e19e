import { setTimeout as sleep } from "node:timers/promises";
import { type Api, InputFile } from "grammy";
import type { Message } from "grammy/types";
import type { Log } from "../../lib/log.ts";
import type { SentPart, TelegramSends } from "../../store/telegram-sends.ts";
import { calling } from "./bot.ts";
import { type Chat, placeOf } from "./chat.ts";
import { hashOf, hasRoom, notesOf, optionsOf, type Part, textOf, WRONG_TOPIC } from "./part.ts";
import { troubleOf } from "./trouble.ts";
import { isAboutBot, isAboutChat, type Trouble } from "./trouble-words.ts";

export interface SenderDeps {
  api: Api;
  sends: TelegramSends;
  /** Called when a chat accepts no messages. */
  onTurnedAway: (chatId: number, why: string) => void;
  signal: AbortSignal;
  log: Log;
}

const GONE = /message to edit not found|message can't be edited|MESSAGE_ID_INVALID/i;
const NOT_MODIFIED = /message is not modified/i;
const NO_TOPIC = /message thread not found|TOPIC_(?:DELETED|CLOSED)/i;

/** Sends, edits and deletes single messages, and records before and after each call what is known of them. */
export function createSender({ api, sends, onTurnedAway, signal, log }: SenderDeps) {
  /** `gone`: the message no longer exists, so another must be sent. */
  async function edit(key: string, to: Chat, part: Part, { shown, repeated }: SentPart, messageId: number): Promise<Edited> {
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
        if (isRefusal(error, GONE) || isRefusal(error, NOT_MODIFIED) || !isBadRequest(error)) throw error;
        return change(false);
      });
    } catch (error) {
      const trouble = troubleOf(error);
      if (trouble?.kind !== "refused" || isAboutBot(trouble)) throw error;
      if (!NOT_MODIFIED.test(trouble.why)) {
        if (turnedAway(trouble, to)) return "refused";
        sends.drop(key, part.name);
        if (GONE.test(trouble.why)) return "gone";
        log.warn("Telegram refuses to change a message", { why: trouble.why });
        return "refused";
      }
    }
    sends.sent(key, part.name, messageId, hash);
    return "shown";
  }

  async function send(key: string, to: Chat, part: Part, mayBeThere: boolean): Promise<"sent" | "refused"> {
    // Asks first, so that an unreachable server is not sent the same message again and again.
    if (mayBeThere) await calling("getMe", () => api.getMe());
    let asHtml = true;
    let place = to;
    let announced = "";
    let landed: { id: number; thread: number | undefined };
    for (;;) {
      const notes = notesOf(to, place, mayBeThere);
      try {
        if (!hasRoom(part) && notes.join(" ") !== announced) announced = await announce(api, notes, place);
        sends.begin(key, part.name, place, mayBeThere);
        const { message_id, message_thread_id } = await calling("sendMessage", () => sendPart(api, part, place, notes, asHtml));
        sends.sent(key, part.name, message_id, hashOf(part));
        landed = { id: message_id, thread: message_thread_id };
        break;
      } catch (error) {
        const trouble = troubleOf(error);
        if (!trouble || trouble.kind === "unknown") throw error;
        if (!mayBeThere) sends.drop(key, part.name);
        if (turnedAway(trouble, place)) return "refused";
        const next = await after(trouble, { asHtml, place });
        if (next === "refused") return next;
        if (next === "later") throw error;
        ({ asHtml, place } = next);
      }
    }
    if (place.threadId !== undefined && landed.thread !== place.threadId)
      await handleWrongTopic(key, place, part, { messageId: landed.id, repeated: mayBeThere });
    return "sent";
  }

  function turnedAway(trouble: Trouble, { chatId }: Chat): boolean {
    if (trouble.kind !== "refused" || !isAboutChat(trouble)) return false;
    onTurnedAway(chatId, trouble.why);
    return true;
  }

  /** What to try after a call that certainly failed. */
  async function after(
    trouble: Trouble,
    tried: { asHtml: boolean; place: Chat },
  ): Promise<"later" | "refused" | { asHtml: boolean; place: Chat }> {
    if (trouble.kind === "flood") {
      await sleep(trouble.seconds * 1_000, undefined, { signal });
      return tried;
    }
    if (trouble.kind !== "refused" || isAboutBot(trouble)) return "later";
    const { threadId, ...chat } = tried.place;
    if (threadId !== undefined && NO_TOPIC.test(trouble.why)) {
      log.warn("a topic is gone: what was for it goes to the chat itself", { topic: threadId });
      return { ...tried, place: chat };
    }
    if (tried.asHtml && trouble.code === 400) return { ...tried, asHtml: false };
    log.warn("Telegram refuses a message", { why: trouble.why });
    return "refused";
  }

  /** Telegram may silently deliver a message for a deleted topic to the chat itself. */
  async function handleWrongTopic(
    key: string,
    { chatId, threadId }: Chat,
    part: Part,
    { messageId, repeated }: { messageId: number; repeated: boolean },
  ): Promise<void> {
    log.warn("a message for a topic landed elsewhere in the chat: the topic may be gone", { topic: threadId });
    sends.begin(key, part.name, placeOf(chatId, undefined), repeated);
    sends.sent(key, part.name, messageId, part.file || !hasRoom(part) ? hashOf(part) : "");
    if (part.file || !hasRoom(part)) await announce(api, [WRONG_TOPIC], placeOf(chatId, undefined));
    else await edit(key, placeOf(chatId, threadId), part, { part: part.name, messageId, shown: "", repeated }, messageId);
  }

  async function takeAway(key: string, to: Chat, part: string, messageId: number | null): Promise<void> {
    if (messageId !== null)
      await calling("deleteMessage", () => api.deleteMessage(to.chatId, messageId)).catch((error: unknown) => {
        if (troubleOf(error)?.kind !== "refused") throw error;
      });
    sends.drop(key, part);
  }

  return { edit, send, takeAway };
}

function sendPart(api: Api, part: Part, { chatId, threadId }: Chat, notes: readonly string[], asHtml: boolean): Promise<Message> {
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

/** Sends notes that do not fit into a message separately. */
async function announce(api: Api, notes: readonly string[], place: Chat): Promise<string> {
  const text = notes.join(" ");
  await calling("sendMessage", () => api.sendMessage(place.chatId, text, { ...threadIn(place), disable_notification: true }));
  return text;
}

type Edited = "shown" | "gone" | "refused";

const threadIn = ({ threadId }: { threadId?: number | undefined }) =>
  threadId === undefined ? {} : { message_thread_id: threadId };

function isRefusal(error: unknown, why: RegExp): boolean {
  const trouble = troubleOf(error);
  return trouble?.kind === "refused" && why.test(trouble.why);
}

function isBadRequest(error: unknown): boolean {
  const trouble = troubleOf(error);
  return trouble?.kind === "refused" && trouble.code === 400;
}
