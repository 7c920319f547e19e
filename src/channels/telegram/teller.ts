import type { Chat } from "./chat.ts";
import { type Content, partsOf } from "./part.ts";
import { createSender, type SenderDeps } from "./sender.ts";

/** Shows content in chats by key: sent the first time, edited after that. */
export interface Teller {
  /**
   * Resolves when Telegram has confirmed everything, with "undeliverable" if it refused some of it. Throws if it should be
   * retried: what was shown stays, and what may have been shown is sent again, marked as a possible repeat.
   */
  show(key: string, to: Chat, content: Content): Promise<"delivered" | "undeliverable">;
  /** The chat that shows a key, as far as Telegram has confirmed it. */
  placeOf(key: string): Chat | undefined;
  /** Resolves when no call is running. */
  idle(): Promise<void>;
}

export function createTeller(deps: SenderDeps): Teller {
  const { sends } = deps;
  const { edit, send, takeAway } = createSender(deps);
  const underWay = new Map<string, Promise<unknown>>();

  async function showNow(key: string, to: Chat, content: Content): Promise<"delivered" | "undeliverable"> {
    const rows = new Map(sends.of(key).map((row) => [row.part, row]));
    const parts = partsOf(content);
    let refused = false;
    for (const part of parts) {
      const row = rows.get(part.name);
      if (content.once && row?.messageId === null) continue;
      const messageId = row?.messageId ?? null;
      const edited = row && messageId !== null ? await edit(key, to, part, row, messageId) : "gone";
      const end = edited === "gone" ? await send(key, to, part, row?.messageId === null) : edited;
      if (end === "refused") refused = true;
    }
    for (const { part, messageId } of rows.values())
      if (!parts.some(({ name }) => name === part)) await takeAway(key, to, part, messageId);
    return refused ? "undeliverable" : "delivered";
  }

  return {
    show(key, to, content) {
      const before = underWay.get(key) ?? Promise.resolve();
      const own = before.catch(() => undefined).then(() => showNow(key, to, content));
      const kept = own
        .catch(() => undefined)
        .finally(() => {
          if (underWay.get(key) === kept) underWay.delete(key);
        });
      underWay.set(key, kept);
      return own;
    },
    placeOf: (key) => sends.placeOf(key),
    idle: async () => void (await Promise.all(underWay.values())),
  };
}
