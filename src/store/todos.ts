import { type TodoItem, TodoList } from "../protocol/todo.ts";
import type { Store } from "./open.ts";
import { readJson } from "./read-json.ts";
import { createState } from "./state.ts";

const keyOf = (holder: string) => `todo:${holder}`;

/** The to-do lists of conversations and tasks. */
export function createTodos(store: Store) {
  const state = createState(store);
  return {
    of: (holder: string): TodoItem[] => readJson(TodoList, state.get(keyOf(holder)) ?? null)?.items ?? [],
    set(holder: string, items: readonly TodoItem[]): void {
      if (items.length === 0) state.delete(keyOf(holder));
      else state.set(keyOf(holder), JSON.stringify({ items }));
    },
  };
}
export type Todos = ReturnType<typeof createTodos>;

/** The owner of a conversation's list. */
export const conversationHolder = (conversation: string): string => `conversation ${conversation}`;
