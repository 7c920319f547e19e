import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { ConversationList } from "../../protocol/api.ts";
import { Conversation } from "../../protocol/messages.ts";
import type { Messages } from "../../store/messages.ts";
import { answers, pageOf } from "./shapes.ts";

export function conversationRoutes(app: OpenAPIHono, { messages }: { messages: Messages }): void {
  const conversations = createRoute({
    method: "get",
    path: "/api/conversations",
    summary: "The conversations, the latest first",
    request: {
      query: z.object({ limit: z.coerce.number().int().min(1).max(200).default(50), before: Conversation.optional() }),
    },
    responses: answers(200, ConversationList),
  });
  app.openapi(conversations, (context) => {
    const { limit, before } = context.req.valid("query");
    const ask = (count: number) => messages.conversations(count, before);
    return context.json(
      pageOf(limit, ask, ({ name }) => name),
      200,
    );
  });
}
