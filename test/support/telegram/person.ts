import { until } from "../until.ts";
import type { BotApi } from "./bot-api.ts";
import type { Shown } from "./chats.ts";
import type { Update } from "./updates.ts";

export interface Attachment {
  kind: "photo" | "document" | "voice" | "audio" | "video";
  content: Buffer;
  name?: string;
  /** The size that Telegram reports, if it is not the real one. */
  size?: number;
  caption?: string;
  group?: string;
}

/** A person who uses Telegram. */
export function createPerson(
  api: BotApi,
  id: number,
  name = `Person ${id}`,
  chat: { id: number; type: string } = { id, type: "private" },
) {
  const from = { id, is_bot: false, first_name: name };
  const message = (thread?: number) => ({
    message_id: api.chats.newId(),
    from,
    chat,
    date: Math.floor(Date.now() / 1000),
    ...(thread !== undefined && { message_thread_id: thread, is_topic_message: true }),
  });
  let presses = 0;

  const person = {
    id,
    /** Returns the update that the message caused. */
    send: (text: string, more: { thread?: number; fields?: Record<string, unknown> } = {}): Update =>
      api.updates.add({ message: { ...message(more.thread), text, ...more.fields } }),
    edit: (update: Update, text: string): Update =>
      api.updates.add({ edited_message: { ...(update.message as object), text, edit_date: Math.floor(Date.now() / 1000) } }),
    attach({ kind, content, name: file, size, caption, group }: Attachment): Update {
      const fileId = `f${api.files.size + 1}`;
      api.files.set(fileId, { path: `${kind}s/file_${api.files.size + 1}`, content, ...(size !== undefined && { size }) });
      const described = {
        file_id: fileId,
        file_unique_id: `u${fileId}`,
        file_size: size ?? content.length,
        ...(file && { file_name: file }),
      };
      const body =
        kind === "photo"
          ? [
              { ...described, width: 90, height: 90, file_size: 10 },
              { ...described, width: 900, height: 900 },
            ]
          : described;
      return api.updates.add({
        message: { ...message(), [kind]: body, ...(caption && { caption }), ...(group && { media_group_id: group }) },
      });
    },
    press(shown: Shown, label: RegExp): string {
      const button = shown.buttons.flat().find(({ text }) => label.test(text));
      if (!button) throw new Error(`there is no button ${label} below: ${shown.text}`);
      return person.pressData(shown, button.data);
    },
    pressData(shown: Shown, data: string): string {
      presses += 1;
      const query = `q${id}-${presses}-${Math.random().toString(36).slice(2)}`;
      api.updates.add({
        callback_query: {
          id: query,
          from,
          chat_instance: "1",
          data,
          message: { message_id: shown.message_id, chat: { id: shown.chat, type: "private" }, date: 1, text: shown.text },
        },
      });
      return query;
    },
    shown: () => api.shown(chat.id),
    /** Waits for a message of the bot that matches. */
    sees: (text: RegExp, withinMs = 20_000): Promise<Shown> =>
      until(
        `${name} to see ${text}, not:\n${api
          .shown(chat.id)
          .map((each) => each.text)
          .join("\n---\n")}`,
        () => api.shown(chat.id).find((each) => text.test(each.text)),
        withinMs,
      ),
    answered: (query: string) => until(`an answer to the press ${query}`, () => api.answers.get(query)),
  };
  return person;
}
export type TelegramPerson = ReturnType<typeof createPerson>;
