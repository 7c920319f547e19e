import type { Store } from "./open.ts";

export interface StoredUpdate {
  bot: number;
  id: number;
  lane: string;
  body: string;
  createdAt: string;
}

/** Telegram tells of nothing that is older than a day, so that nothing older can come a second time. */
const REMEMBERED_MS = 3 * 86_400_000;

/** What Telegram told, on disk before it is confirmed, until it is handled; its words are forgotten then. */
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
    /** On disk when this returns; what was told before is not told again. */
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
    /** Does something and notes that they are handled, or does neither where it comes to nothing. */
    doneWith: (updates: readonly Pick<StoredUpdate, "bot" | "id">[], work: () => boolean): boolean =>
      store.transaction(() => work() && mark(updates)),
  };
}
export type TelegramUpdates = ReturnType<typeof createTelegramUpdates>;
