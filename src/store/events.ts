import { z } from "zod";
import type { Event, EventType, News } from "../protocol/events.ts";
import type { Store } from "./open.ts";
import { readJson } from "./read-json.ts";

interface Row {
  id: number;
  type: EventType;
  conversation: string | null;
  data: string;
}

const Data = z.record(z.string(), z.unknown());
/** How many events are kept for a client that was away. */
const KEEP = 20_000;

/** The one stream of events, in the order they happened; the database numbers them, whichever process tells. */
export function createEventLog(store: Store, now: () => Date = () => new Date()) {
  const insert = store.db.prepare("INSERT INTO events (type, conversation, data, created_at) VALUES (?, ?, ?, ?)");
  const since = store.db.prepare("SELECT id, type, conversation, data FROM events WHERE id > ? ORDER BY id LIMIT ?");
  const last = store.db.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'events'");
  const prune = store.db.prepare("DELETE FROM events WHERE id <= ?");
  let lastPruned = 0;

  const lastId = () => (last.get() as { seq: number } | undefined)?.seq ?? 0;
  return {
    lastId,
    append(news: readonly News[]): Event[] {
      const time = now().toISOString();
      const write = () =>
        news.map((item) => ({
          ...item,
          id: Number(insert.run(item.type, item.conversation ?? null, JSON.stringify(item.data), time).lastInsertRowid),
        }));
      return store.soft(() => (news.length === 1 ? write() : store.transaction(write)));
    },
    since: (id: number, limit = 1_000): Event[] => (since.all(id, limit) as unknown as Row[]).map(toEvent),
    /** Forgets the oldest; called now and then. */
    prune(): void {
      const limit = lastId() - KEEP;
      if (limit <= lastPruned) return;
      lastPruned = limit;
      store.soft(() => prune.run(limit));
    },
  };
}
export type EventLog = ReturnType<typeof createEventLog>;

/** An event that cannot be read keeps its place in the order. */
function toEvent({ id, type, conversation, data }: Row): Event {
  return { id, type, ...(conversation !== null && { conversation }), data: readJson(Data, data) ?? {} };
}
