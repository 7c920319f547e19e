import { z } from "zod";
import { type Event, type News, readEvent } from "../protocol/events.ts";
import type { Store } from "./open.ts";
import { readJson } from "./read-json.ts";

interface Row {
  id: number;
  type: string;
  conversation: string | null;
  data: string;
}

/** The event log, in order, numbered by the database. */
export function createEventLog(store: Store, now: () => Date = () => new Date()) {
  const insert = store.db.prepare("INSERT INTO events (type, conversation, data, created_at) VALUES (?, ?, ?, ?)");
  const since = store.db.prepare("SELECT id, type, conversation, data FROM events WHERE id > ? ORDER BY id LIMIT ?");
  const back = store.db.prepare(
    "SELECT id, type, conversation, data FROM events WHERE id <= ? AND conversation IS ? AND type IN ('message.started', 'message.delta', 'message.tool') ORDER BY id DESC",
  );
  const last = store.db.prepare("SELECT seq FROM sqlite_sequence WHERE name = 'events'");

  const lastId = () => (last.get() as { seq: number } | undefined)?.seq ?? 0;
  return {
    lastId,
    isInTransaction: () => store.db.isTransaction,
    afterCommit: store.afterCommit,
    afterRollback: store.afterRollback,
    append(news: readonly News[]): Event[] {
      const time = now().toISOString();
      const write = () =>
        news.map((item) => ({
          ...item,
          id: Number(insert.run(item.type, item.conversation ?? null, JSON.stringify(item.data), time).lastInsertRowid),
        }));
      return store.soft(write);
    },
    /** The events of a message's latest turn attempt, oldest first, and the id of the last one. */
    turnSoFar(conversation: string, messageId: string): { events: Event[]; upTo: number } {
      const upTo = lastId();
      const events: Event[] = [];
      for (const row of back.iterate(upTo, conversation) as unknown as Iterable<Row>) {
        const event = toEvent(row);
        if (!event || !("id" in event.data) || event.data.id !== messageId) continue;
        if (event.type === "message.started") break;
        events.push(event);
      }
      return { events: events.reverse(), upTo };
    },
    /** The events after a given one, and the last id examined. Events of other versions may be skipped. */
    since(id: number, limit = 1_000): { events: Event[]; upTo: number } {
      const rows = since.all(id, limit) as unknown as Row[];
      return { events: rows.flatMap((row) => toEvent(row) ?? []), upTo: rows.at(-1)?.id ?? id };
    },
  };
}
export type EventLog = ReturnType<typeof createEventLog>;

function toEvent(row: Row): Event | undefined {
  return readEvent({ ...row, data: readJson(z.unknown(), row.data) });
}
