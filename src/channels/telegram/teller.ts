import type { Chat } from "./chat.ts";
import { type Content, partsOf } from "./part.ts";
import { createSender, type SenderDeps } from "./sender.ts";

/** Shows things in chats, each under a key: sent the first time, edited after that. */
export interface Teller {
  /**
   * Done when Telegram has confirmed all of it. Throws when that is to be tried again: then what has been shown stays, and what
   * may have been is sent once more, marked as perhaps a repeat. Undeliverable when Telegram refuses some of it; the rest is shown.
   */
  show(key: string, to: Chat, content: Content): Promise<"delivered" | "undeliverable">;
  /** Where something is shown under a key, as far as Telegram has confirmed it. */
  placeOf(key: string): Chat | undefined;
  /** Resolves when nothing is under way. */
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
