import { z } from "zod";
import type { Emit } from "../protocol/events.ts";
import { formatTodo, TodoItem } from "../protocol/todo.ts";
import { conversationHolder, type Todos } from "../store/todos.ts";
import { type Tool, tool } from "./tool.ts";

export interface TodoDeps {
  todos: Todos;
  /** The conversation that a message belongs to; undefined for a task. */
  conversationOf: (owner: string) => string | undefined;
  emit: Emit;
  /** Redacts secrets in a text. */
  clean: (text: string) => string;
}

/** Keeps the list of steps of a conversation or a task. It changes nothing else, so no approval is needed. */
export function todo({ todos, conversationOf, emit, clean }: TodoDeps): Tool {
  return tool({
    name: "todo",
    description:
      "Keep your list of steps for work of several steps, where the user sees it: the whole list each time. Without items: read it.",
    schema: z.object({ items: z.array(TodoItem).max(50).optional() }),
    kind: "read",
    deadlineMs: 10_000,
    async run({ items }, { owner }) {
      const conversation = conversationOf(owner);
      const holder = conversation === undefined ? owner : conversationHolder(conversation);
      if (items === undefined) return formatTodo(todos.of(holder)) || "The list is empty.";
      const list = items.map(({ text, state }) => ({ text: clean(text), state }));
      todos.set(holder, list);
      emit({ type: "todo.changed", conversation, data: { id: owner, items: list } });
      const open = list.filter(({ state }) => state !== "done").length;
      return `Kept: ${list.length} ${list.length === 1 ? "step" : "steps"}, ${open} not done.`;
    },
  });
}
