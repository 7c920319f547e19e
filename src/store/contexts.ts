import { ContextUse } from "../protocol/turns.ts";
import type { Store } from "./open.ts";
import { readJson } from "./read-json.ts";

/** What filled the model's window when a conversation was last asked for an answer. */
export function createContexts(store: Store) {
  const { db } = store;
  const read = db.prepare("SELECT context FROM conversation_contexts WHERE conversation = ?");
  const write = db.prepare(
    "INSERT INTO conversation_contexts VALUES (?, ?) ON CONFLICT (conversation) DO UPDATE SET context = excluded.context",
  );
  return {
    of: (conversation: string): ContextUse | undefined =>
      readJson(ContextUse, (read.get(conversation) as { context: string } | undefined)?.context ?? null),
    set: (conversation: string, use: ContextUse): void => store.soft(() => void write.run(conversation, JSON.stringify(use))),
  };
}
export type Contexts = ReturnType<typeof createContexts>;
