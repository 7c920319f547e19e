import { type Entity, parseHtml } from "./html.ts";

/** A message of the bot as a reader sees it now. */
export interface Shown {
  message_id: number;
  chat: number;
  thread?: number;
  text: string;
  entities: Entity[];
  silent: boolean;
  buttons: { text: string; data: string }[][];
  document?: { name: string; content: Buffer };
  replyTo?: number;
  edits: number;
  pinned?: boolean;
  at: number;
}

export class Refused extends Error {
  readonly code: number;
  constructor(description: string, code = 400) {
    super(`${code === 403 ? "Forbidden" : "Bad Request"}: ${description}`);
    this.code = code;
  }
}

const LIMIT = { text: 4_096, caption: 1_024 };
const TOO_LONG = { text: "message is too long", caption: "message caption is too long" };
/** Text without any visible character. */
const UNSEEN = /^[\s\u00a0\u200b-\u200f\u202e\u2800\ufeff]*$/;

/**
 * Telegram removes carriage returns and the characters U+2028 to U+202E, such as direction marks. It replaces all other control
 * characters but newlines with spaces.
 */
const cleaned = (text: string) =>
  [...text]
    .filter((letter) => letter !== "\r" && !(letter >= "\u2028" && letter <= "\u202e"))
    .map((letter) => (letter < " " && letter !== "\n" ? " " : letter))
    .join("");

export type Payload = Record<string, unknown>;

/** All chats of the bot, with Telegram's rules for what it may send there. */
export function createChats() {
  const shown: Shown[] = [];
  const drafts: { chat: number; text: string; until: number }[] = [];
  const topics = new Map<number, Map<number, string>>();
  const state = { nextId: 100, topicsEnabled: false, fallsToGeneral: false };
  /** The chats that have written to the bot: it cannot start a chat itself. */
  const met = new Set<number>();
  /** The chats that have blocked the bot. */
  const blocked = new Set<number>();
  const reactions = new Map<number, string>();

  function textOf(payload: Payload, field: "text" | "caption", tooLong = TOO_LONG[field]): { text: string; entities: Entity[] } {
    const given = String(payload[field] ?? "");
    if (field === "text" && given === "") throw new Refused("message text is empty");
    if (!given.isWellFormed()) throw new Refused("strings must be encoded in UTF-8");
    if (payload.parse_mode !== undefined && payload.parse_mode !== "HTML") throw new Refused("unsupported parse_mode");
    const raw = cleaned(given);
    const parsed = payload.parse_mode === "HTML" ? parseHtml(raw) : { text: raw.trim(), entities: [] };
    if ("refused" in parsed) throw new Refused(parsed.refused);
    if (field === "text" && UNSEEN.test(parsed.text)) throw new Refused("message must be non-empty");
    if (parsed.text.length > LIMIT[field]) throw new Refused(tooLong);
    return { text: parsed.text, entities: parsed.entities.slice(0, 100) };
  }

  function checkReach(chat: number): void {
    if (!met.has(chat)) throw new Refused("chat not found");
    if (blocked.has(chat)) throw new Refused("bot was blocked by the user", 403);
  }

  function buttonsOf(payload: Payload): Shown["buttons"] {
    const markup = payload.reply_markup as { inline_keyboard?: { text: string; callback_data: string }[][] } | undefined;
    return (markup?.inline_keyboard ?? []).map((row) =>
      row.map(({ text, callback_data }) => {
        const size = Buffer.byteLength(callback_data);
        if (size < 1 || size > 64) throw new Refused("BUTTON_DATA_INVALID");
        return { text, data: callback_data };
      }),
    );
  }

  function threadOf(chat: number, payload: Payload): number | undefined {
    const thread = payload.message_thread_id === undefined ? undefined : Number(payload.message_thread_id);
    if (thread === undefined || topics.get(chat)?.has(thread)) return thread;
    if (state.fallsToGeneral) return undefined;
    throw new Refused("message thread not found");
  }

  const find = (payload: Payload): Shown | undefined =>
    shown.find(({ message_id, chat }) => message_id === Number(payload.message_id) && chat === Number(payload.chat_id));

  return {
    ...{ state, shown, topics, met, blocked, reactions },
    drafts: () => drafts.filter(({ until }) => until > Date.now()),
    newId: () => state.nextId++,
    send(payload: Payload, document?: Shown["document"]): Shown {
      const chat = Number(payload.chat_id);
      checkReach(chat);
      const thread = threadOf(chat, payload);
      const content = textOf(payload, document ? "caption" : "text");
      const reply = payload.reply_parameters as { message_id?: number } | undefined;
      const message: Shown = {
        message_id: state.nextId++,
        chat,
        ...(thread !== undefined && { thread }),
        ...content,
        silent: payload.disable_notification === true || payload.disable_notification === "true",
        buttons: buttonsOf(payload),
        ...(document && { document }),
        ...(reply?.message_id !== undefined && { replyTo: reply.message_id }),
        edits: 0,
        at: Date.now(),
      };
      shown.push(message);
      return message;
    },
    edit(payload: Payload, field: "text" | "markup"): Shown {
      checkReach(Number(payload.chat_id));
      const message = find(payload);
      if (!message) throw new Refused("message to edit not found");
      const content =
        field === "text" ? textOf(payload, "text", "MESSAGE_TOO_LONG") : { text: message.text, entities: message.entities };
      const buttons = buttonsOf(payload);
      if (
        JSON.stringify([content, buttons]) ===
        JSON.stringify([{ text: message.text, entities: message.entities }, message.buttons])
      )
        throw new Refused(
          "message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message",
        );
      return Object.assign(message, content, { buttons, edits: message.edits + 1 });
    },
    remove(payload: Payload): boolean {
      const message = find(payload);
      if (!message) throw new Refused("message to delete not found");
      shown.splice(shown.indexOf(message), 1);
      return true;
    },
    pin(payload: Payload): boolean {
      const message = find(payload);
      if (!message) throw new Refused("message to pin not found");
      message.pinned = true;
      return true;
    },
    react(payload: Payload): boolean {
      const [reaction] = payload.reaction as { type: string; emoji: string }[];
      if (reaction) reactions.set(Number(payload.message_id), reaction.emoji);
      return true;
    },
    draft(payload: Payload): boolean {
      const chat = Number(payload.chat_id);
      if (chat < 0) throw new Refused("TEXTDRAFT_PEER_INVALID");
      drafts.push({ chat, text: textOf(payload, "text").text, until: Date.now() + 30_000 });
      return true;
    },
    createTopic(payload: Payload): { message_thread_id: number; name: string } {
      if (!state.topicsEnabled) throw new Refused("the chat is not a forum");
      const chat = Number(payload.chat_id);
      const id = state.nextId++;
      const name = String(payload.name ?? "");
      if (name.length < 1 || name.length > 128) throw new Refused("TOPIC_TITLE_EMPTY");
      topics.set(chat, (topics.get(chat) ?? new Map()).set(id, name));
      return { message_thread_id: id, name };
    },
  };
}
export type Chats = ReturnType<typeof createChats>;
