import type { Store } from "./open.ts";

/** The current conversation of a chat without topics; `main` unless somebody began another. */
export function createTelegramChats({ db }: Store) {
  const read = db.prepare("SELECT conversation FROM telegram_chats WHERE chat = ?");
  const write = db.prepare(
    "INSERT INTO telegram_chats (chat, conversation) VALUES (?, ?) ON CONFLICT (chat) DO UPDATE SET conversation = excluded.conversation",
  );
  return {
    conversationOf: (chat: number): string => (read.get(chat) as { conversation: string } | undefined)?.conversation ?? "main",
    switchTo: (chat: number, conversation: string) => void write.run(chat, conversation),
  };
}
export type TelegramChats = ReturnType<typeof createTelegramChats>;
