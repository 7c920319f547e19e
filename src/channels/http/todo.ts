import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { Conversation } from "../../protocol/messages.ts";
import { TodoList } from "../../protocol/todo.ts";
import type { Squads } from "../../squads/squads.ts";
import { conversationHolder, type Todos } from "../../store/todos.ts";
import { answers } from "./shapes.ts";

export interface TodoRoutesDeps {
  todos: Pick<Todos, "of">;
  squads: Pick<Squads, "task">;
}

/** The to-do lists of conversations and tasks. */
export function todoRoutes(app: OpenAPIHono, { todos, squads }: TodoRoutesDeps): void {
  const conversation = createRoute({
    method: "get",
    path: "/api/conversations/{name}/todo",
    summary: "The to-do list that the model keeps for a conversation; empty where it keeps none",
    request: { params: z.object({ name: Conversation }) },
    responses: answers(200, TodoList),
  });
  app.openapi(conversation, (context) =>
    context.json({ items: todos.of(conversationHolder(context.req.valid("param").name)) }, 200),
  );

  const task = createRoute({
    method: "get",
    path: "/api/tasks/{id}/todo",
    summary: "The to-do list that an agent keeps for a task",
    request: { params: z.object({ id: z.string() }) },
    responses: answers(200, TodoList),
  });
  app.openapi(task, (context) => context.json({ items: todos.of(squads.task(context.req.valid("param").id).id) }, 200));
}
