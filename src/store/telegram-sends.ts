import type { Source } from "../protocol/messages.ts";
import type { Store } from "./open.ts";

type SentPlace = Extract<Source, { channel: "telegram" }>;

/** A Telegram message that is part of something delivered. */
export interface SentPart {
  part: string;
  /** Null while it is unknown whether it was sent. */
  messageId: number | null;
  /** The hash of its last content; "" if unknown. */
  shown: string;
  /** Whether it was marked as a possible repeat. */
  repeated: boolean;
}

interface Row {
  part: string;
  message_id: number | null;
  shown: string;
  repeated: number;
}

const REMEMBERED_MS = 90 * 86_400_000;

/** Which Telegram messages show what, and which are being sent. Survives a crash. */
export function createTelegramSends(store: Store, now: () => Date = () => new Date()) {
  const { db } = store;
  const of = db.prepare("SELECT part, message_id, shown, repeated FROM telegram_sends WHERE key = ? ORDER BY part");
  const begin = db.prepare(
    `INSERT INTO telegram_sends (key, part, chat, thread, message_id, shown, repeated, created_at) VALUES (?, ?, ?, ?, NULL, '', ?, ?)
     ON CONFLICT (key, part) DO UPDATE SET chat = excluded.chat, thread = excluded.thread, message_id = NULL, shown = '',
       repeated = excluded.repeated`,
  );
  const place = db.prepare(
    "SELECT chat, thread FROM telegram_sends WHERE key = ? AND message_id IS NOT NULL ORDER BY part LIMIT 1",
  );
  const sent = db.prepare("UPDATE telegram_sends SET message_id = ?, shown = ? WHERE key = ? AND part = ?");
  const drop = db.prepare("DELETE FROM telegram_sends WHERE key = ? AND part = ?");
  const forget = db.prepare("DELETE FROM telegram_sends WHERE created_at < ?");
  return {
    of: (key: string): SentPart[] =>
      (of.all(key) as unknown as Row[]).map(({ part, message_id, shown, repeated }) => ({
        part,
        messageId: message_id,
        shown,
        repeated: repeated === 1,
      })),
    placeOf(key: string): SentPlace | undefined {
      const row = place.get(key) as { chat: number; thread: number | null } | undefined;
      return row && { channel: "telegram", chatId: row.chat, ...(row.thread !== null && { threadId: row.thread }) };
    },
    begin: (key: string, part: string, { chatId, threadId }: SentPlace, repeated: boolean) =>
      void store.soft(() => begin.run(key, part, chatId, threadId ?? null, repeated ? 1 : 0, now().toISOString())),
    sent: (key: string, part: string, messageId: number, shown: string) =>
      void store.soft(() => sent.run(messageId, shown, key, part)),
    /** It was not sent, or is gone. */
    drop: (key: string, part: string) => void store.soft(() => drop.run(key, part)),
    forgetOld: () => void store.soft(() => forget.run(new Date(now().getTime() - REMEMBERED_MS).toISOString())),
  };
}
export type TelegramSends = ReturnType<typeof createTelegramSends>;
