import type { Store } from "./open.ts";

export interface PairingCode {
  code: string;
  userId: number;
  name: string;
  expiresAt: string;
}

/** How many strangers are tracked individually; more are only counted together. */
const MAX_STRANGERS = 10_000;

/** Pairing requests, and messages from strangers. */
export function createTelegramPeople(store: Store, now: () => Date = () => new Date()) {
  const { db } = store;
  const pending = db.prepare(
    "SELECT code, user_id AS userId, name, expires_at AS expiresAt FROM telegram_codes WHERE expires_at > ? ORDER BY expires_at",
  );
  const insert = db.prepare("INSERT INTO telegram_codes (code, user_id, name, expires_at) VALUES (?, ?, ?, ?)");
  const expire = db.prepare("DELETE FROM telegram_codes WHERE expires_at <= ?");
  const clear = db.prepare("DELETE FROM telegram_codes");
  const meet = db.prepare(
    `INSERT INTO telegram_strangers (user_id, count, last_at) VALUES (?, 1, ?)
     ON CONFLICT (user_id) DO UPDATE SET count = count + 1, last_at = excluded.last_at RETURNING count`,
  );
  const sums = db.prepare("SELECT COUNT(*) AS people, coalesce(SUM(count), 0) AS messages FROM telegram_strangers");
  const strangers = () => sums.get() as { people: number; messages: number };
  return {
    pending: (): PairingCode[] => pending.all(now().toISOString()) as unknown as PairingCode[],
    addCode({ code, userId, name, expiresAt }: PairingCode): void {
      store.transaction(() => {
        expire.run(now().toISOString());
        insert.run(code, userId, name, expiresAt);
      });
    },
    clearCodes: () => void clear.run(),
    /** Counts a stranger's message; returns whether it was the first. */
    meet(userId: number): boolean {
      const who = strangers().people >= MAX_STRANGERS ? 0 : userId;
      return (store.soft(() => meet.get(who, now().toISOString())) as { count: number }).count === 1;
    },
    strangers,
  };
}
export type TelegramPeople = ReturnType<typeof createTelegramPeople>;
