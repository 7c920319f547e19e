import { z } from "zod";

export const TodoItem = z.object({
  text: z.string().trim().min(1).max(300),
  state: z.enum(["open", "running", "done"]),
});
export type TodoItem = z.infer<typeof TodoItem>;

/** The steps of a piece of work, as its model tracks them. */
export const TodoList = z.object({ items: z.array(TodoItem).max(50) }).meta({ id: "TodoList" });
export type TodoList = z.infer<typeof TodoList>;

export const TODO_MARKS: Readonly<Record<TodoItem["state"], string>> = { open: "☐", running: "▸", done: "☑" };

/** The list as plain lines. */
export function formatTodo(items: readonly TodoItem[]): string {
  return items.map(({ text, state }) => `${TODO_MARKS[state]} ${text}`).join("\n");
}

export const isUnfinished = (items: readonly TodoItem[]): boolean => items.some(({ state }) => state !== "done");
