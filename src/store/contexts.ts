import { ContextUse } from "../protocol/turns.ts";
import { isTemporary } from "./faults.ts";
import type { Store } from "./open.ts";
import { readJson } from "./read-json.ts";

/** How a conversation's context window was filled at its last answer. */
export function createContexts(store: Store) {
  const { db } = store;
  const read = db.prepare("SELECT context FROM conversation_contexts WHERE conversation = ?");
  const write = db.prepare(
    "INSERT INTO conversation_contexts VALUES (?, ?) ON CONFLICT (conversation) DO UPDATE SET context = excluded.context",
  );
  const remove = db.prepare("DELETE FROM conversation_contexts WHERE conversation = ?");
  return {
    /** The window is empty until the next answer. */
    forget: (conversation: string) => void remove.run(conversation),
    of: (conversation: string): ContextUse | undefined =>
      readJson(ContextUse, (read.get(conversation) as { context: string } | undefined)?.context ?? null),
    /** If it cannot be written now, it is dropped: the next answer reports it again. */
    set(conversation: string, use: ContextUse): void {
      try {
        store.soft(() => write.run(conversation, JSON.stringify(use)));
      } catch (error) {
        if (!isTemporary(error)) throw error;
      }
    },
  };
}
export type Contexts = ReturnType<typeof createContexts>;
