import type { Store } from "./open.ts";

/** How many rows a step examines. */
const EVENTS = 1_000;
const MESSAGES = 50;

/** Deletes everything said in a conversation, in short steps. */
export function createConversationRemoval(store: Store) {
  const { db } = store;
  const last = db.prepare("SELECT coalesce(max(seq), 0) AS seq FROM messages WHERE conversation = ?");
  const lastEvent = db.prepare("SELECT coalesce(max(id), 0) AS id FROM events");
  const firstEvent = db.prepare("SELECT coalesce(min(id), 0) AS id FROM events");
  const events = db.prepare("DELETE FROM events WHERE id >= ? AND id < ? AND conversation = ?");
  const slice = db.prepare("SELECT id FROM messages WHERE conversation = ? AND seq <= ? ORDER BY seq LIMIT ?");
  const own = [
    "DELETE FROM tool_calls WHERE owner = ?",
    "DELETE FROM approvals WHERE owner_id = ?",
    "DELETE FROM outbox WHERE about = ?",
    "DELETE FROM messages WHERE id = ?",
  ].map((sql) => db.prepare(sql));
  const rest = [
    "DELETE FROM conversation_log WHERE conversation = ?",
    "DELETE FROM conversation_contexts WHERE conversation = ?",
    "DELETE FROM io_state WHERE key = 'todo:conversation ' || ?",
    "DELETE FROM io_state WHERE key = 'cleared:' || ?",
    `UPDATE conversations SET folder = NULL, title = NULL, mode = NULL, model = NULL, unread = 0,
       opening = (SELECT substr(text, 1, 400) FROM messages WHERE conversation = name ORDER BY seq LIMIT 1) WHERE name = ?`,
    "DELETE FROM conversations WHERE name = ? AND messages = 0",
  ].map((sql) => db.prepare(sql));

  return {
    /**
     * The steps that delete everything said so far; each yields the number of deleted messages. Later messages stay, as the
     * beginning of another conversation by that name.
     */
    begin(name: string): Generator<number> {
      const { seq } = last.get(name) as { seq: number };
      const { id: end } = lastEvent.get() as { id: number };
      return steps(name, seq, end);
    },
  };

  /** The conversation's own row goes last, so that an interrupted removal can be repeated. */
  function* steps(name: string, seq: number, end: number): Generator<number> {
    for (let from = (firstEvent.get() as { id: number }).id; from <= end; from += EVENTS) {
      store.soft(() => events.run(from, Math.min(from + EVENTS, end + 1), name));
      yield 0;
    }
    for (;;) {
      const ids = (slice.all(name, seq, MESSAGES) as { id: string }[]).map(({ id }) => id);
      if (ids.length === 0) break;
      store.soft(() => {
        for (const id of ids) for (const statement of own) statement.run(id);
      });
      yield ids.length;
    }
    store.transaction(() => {
      for (const statement of rest) statement.run(name);
    });
    yield 0;
  }
}
export type ConversationRemoval = ReturnType<typeof createConversationRemoval>;
