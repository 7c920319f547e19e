import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { ConversationList } from "../../protocol/api.ts";
import { Conversation, MessageHit } from "../../protocol/messages.ts";
import { ContextUse } from "../../protocol/turns.ts";
import type { Contexts } from "../../store/contexts.ts";
import type { MessageSearch } from "../../store/message-search.ts";
import type { Messages } from "../../store/messages.ts";
import { answers, pageOf } from "./shapes.ts";

export interface ConversationRoutesDeps {
  messages: Messages;
  contexts: Pick<Contexts, "of">;
  searchMessages: MessageSearch;
}

export function conversationRoutes(app: OpenAPIHono, { messages, contexts, searchMessages }: ConversationRoutesDeps): void {
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

  const search = createRoute({
    method: "get",
    path: "/api/conversations/search",
    summary: "What was said or answered with these words, of the last 5,000 messages, the latest first",
    request: {
      query: z.object({
        q: z.string().trim().min(2, "Say what to look for: at least two characters.").max(200),
        limit: z.coerce.number().int().min(1).max(50).default(10),
      }),
    },
    responses: answers(200, z.object({ items: z.array(MessageHit) })),
  });
  app.openapi(search, (context) => {
    const { q, limit } = context.req.valid("query");
    return context.json({ items: searchMessages(q, limit) }, 200);
  });

  const use = createRoute({
    method: "get",
    path: "/api/conversations/{name}/context",
    summary: "What filled the model's window when this conversation was last asked for an answer; null before that",
    request: { params: z.object({ name: Conversation }) },
    responses: answers(200, z.object({ context: ContextUse.nullable() })),
  });
  app.openapi(use, (context) => context.json({ context: contexts.of(context.req.valid("param").name) ?? null }, 200));
}
