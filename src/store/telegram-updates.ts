import type { Store } from "./open.ts";

export interface StoredUpdate {
  bot: number;
  id: number;
  lane: string;
  body: string;
  createdAt: string;
}

/** Telegram keeps updates for a day, so older ones cannot be delivered again. */
const REMEMBERED_MS = 3 * 86_400_000;

/** Telegram updates, stored before they are confirmed. Their content is deleted once they are handled. */
export function createTelegramUpdates(store: Store, now: () => Date = () => new Date()) {
  const { db } = store;
  const insert = db.prepare(
    "INSERT INTO telegram_updates (bot, id, lane, body, state, created_at) VALUES (?, ?, ?, ?, 'waiting', ?) ON CONFLICT DO NOTHING",
  );
  const waiting = db.prepare(
    "SELECT bot, id, lane, body, created_at AS createdAt FROM telegram_updates WHERE lane = ? AND state = 'waiting' ORDER BY id",
  );
  const lanes = db.prepare("SELECT DISTINCT lane FROM telegram_updates WHERE state = 'waiting'");
  const done = db.prepare("UPDATE telegram_updates SET state = 'done', body = '' WHERE bot = ? AND id = ?");
  const forget = db.prepare("DELETE FROM telegram_updates WHERE state = 'done' AND created_at < ?");
  function mark(updates: readonly Pick<StoredUpdate, "bot" | "id">[]): true {
    for (const { bot, id } of updates) done.run(bot, id);
    return true;
  }
  return {
    /** Stores updates, skipping known ones; on disk when this returns. */
    add(updates: readonly Omit<StoredUpdate, "createdAt">[]): void {
      store.transaction(() => {
        const at = now();
        for (const { bot, id, lane, body } of updates) insert.run(bot, id, lane, body, at.toISOString());
        forget.run(new Date(at.getTime() - REMEMBERED_MS).toISOString());
      });
    },
    waiting: (lane: string): StoredUpdate[] => waiting.all(lane) as unknown as StoredUpdate[],
    lanes: (): string[] => (lanes.all() as { lane: string }[]).map(({ lane }) => lane),
    done: (updates: readonly Pick<StoredUpdate, "bot" | "id">[]) => void store.transaction(() => mark(updates)),
    /** Runs work and, if it returns true, marks the updates as handled in the same transaction. */
    doneWith: (updates: readonly Pick<StoredUpdate, "bot" | "id">[], work: () => boolean): boolean =>
      store.transaction(() => work() && mark(updates)),
  };
}
export type TelegramUpdates = ReturnType<typeof createTelegramUpdates>;
