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
/** The one stream of events, in the order they happened; the database numbers them, whichever process tells. */
export function createEventLog(store: Store, now: () => Date = () => new Date()) {
  const insert = store.db.prepare("INSERT INTO events (type, conversation, data, created_at) VALUES (?, ?, ?, ?)");
  const since = store.db.prepare("SELECT id, type, conversation, data FROM events WHERE id > ? ORDER BY id LIMIT ?");
  const last = store.db.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'events'");

  const lastId = () => (last.get() as { seq: number } | undefined)?.seq ?? 0;
  return {
    lastId,
    /** Does not wait for another process that holds the file: news can be told a moment later. */
    append(news: readonly News[]): Event[] {
      const time = now().toISOString();
      const write = () =>
        news.map((item) => ({
          ...item,
          id: Number(insert.run(item.type, item.conversation ?? null, JSON.stringify(item.data), time).lastInsertRowid),
        }));
      return store.atOnce(() => store.soft(() => (news.length === 1 ? write() : store.transaction(write))));
    },
    since: (id: number, limit = 1_000): Event[] => (since.all(id, limit) as unknown as Row[]).map(toEvent),
  };
}
export type EventLog = ReturnType<typeof createEventLog>;

/** An event that cannot be read keeps its place in the order. */
function toEvent({ id, type, conversation, data }: Row): Event {
  return { id, type, ...(conversation !== null && { conversation }), data: readJson(Data, data) ?? {} };
}
