import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import type { OwnCommand } from "../../home/own-command.ts";
import type { ConversationSettings } from "../../orchestrator/conversation-settings.ts";
import type { DeleteConversation } from "../../orchestrator/delete-conversation.ts";
import {
  ConversationChange,
  ConversationInfo,
  ConversationList,
  DeletedConversation,
  OpenConversation,
} from "../../protocol/conversations.ts";
import { Conversation, MessageHit } from "../../protocol/messages.ts";
import { ContextUse } from "../../protocol/turns.ts";
import type { Contexts } from "../../store/contexts.ts";
import type { MessageSearch } from "../../store/message-search.ts";
import { answers, body, pageOf } from "./shapes.ts";
import { type TodoRoutesDeps, todoRoutes } from "./todo.ts";

export interface ConversationRoutesDeps extends TodoRoutesDeps {
  conversations: ConversationSettings;
  deleteConversation: DeleteConversation;
  contexts: Pick<Contexts, "of">;
  searchMessages: MessageSearch;
  /** Finds files of a project by part of their names. */
  findNames: (folder: string, words: string, limit: number) => Promise<string[]>;
  /** Commands that the user or the project defined. */
  ownCommands: (project: string | null) => OwnCommand[];
  /** Starts the model's window anew with the next message: with a short record of the conversation, or with nothing. */
  renewConversation: (name: string, options: { forget: boolean }) => ConversationInfo;
}

const Named = z.object({ name: Conversation });

export function conversationRoutes(app: OpenAPIHono, deps: ConversationRoutesDeps): void {
  const { conversations, deleteConversation, searchMessages } = deps;
  windowRoutes(app, deps);
  completionRoutes(app, deps);
  todoRoutes(app, deps);
  const list = createRoute({
    method: "get",
    path: "/api/conversations",
    summary: "The conversations, the latest first",
    request: {
      query: z.object({
        limit: z.coerce.number().int().min(1).max(200).default(50),
        before: Conversation.optional(),
        folder: z.string().max(4_096).optional().describe("only those that work in this folder"),
        q: z.string().trim().max(200).optional().describe("only those with these words in name, title or folder"),
      }),
    },
    responses: answers(200, ConversationList),
  });
  app.openapi(list, (context) => {
    const { limit, before, folder, q } = context.req.valid("query");
    const ask = (count: number) => conversations.list({ limit: count, before, folder, words: q || undefined });
    return context.json(
      pageOf(limit, ask, ({ name }) => name),
      200,
    );
  });

  const open = createRoute({
    method: "post",
    path: "/api/conversations",
    summary:
      "The conversation for somebody who stands in a folder: that of the project around it, made if there is none, elsewhere main",
    request: { body: body(OpenConversation) },
    responses: { ...answers(200, ConversationInfo), ...answers(201, ConversationInfo) },
  });
  app.openapi(open, async (context) => {
    const { conversation, isNew } = await conversations.open(context.req.valid("json"));
    return isNew ? context.json(conversation, 201) : context.json(conversation, 200);
  });

  const search = createRoute({
    method: "get",
    path: "/api/conversations/search",
    summary: "What was said or answered with these words, the latest first",
    request: {
      query: z.object({
        q: z.string().trim().min(2, "Say what to look for: at least two characters.").max(200),
        limit: z.coerce.number().int().min(1).max(50).default(10),
      }),
    },
    responses: answers(200, z.object({ items: z.array(MessageHit) })),
  });
  app.openapi(search, async (context) => {
    const { q, limit } = context.req.valid("query");
    const found = await searchMessages({ query: q, limit });
    const items = found.map(({ id, conversation, createdAt, snippet }) => ({
      ...{ id, conversation: conversation ?? "", createdAt, snippet },
    }));
    return context.json({ items }, 200);
  });

  const one = createRoute({
    method: "get",
    path: "/api/conversations/{name}",
    summary: "One conversation",
    request: { params: Named },
    responses: answers(200, ConversationInfo),
  });
  app.openapi(one, (context) => context.json(conversations.get(context.req.valid("param").name), 200));

  const change = createRoute({
    method: "patch",
    path: "/api/conversations/{name}",
    summary: "Sets folder, title, mode or model; null goes back to the default. Makes the conversation if there is none",
    request: { params: Named, body: body(ConversationChange) },
    responses: answers(200, ConversationInfo),
  });
  app.openapi(change, async (context) =>
    context.json(await conversations.change(context.req.valid("param").name, context.req.valid("json")), 200),
  );

  const seen = createRoute({
    method: "post",
    path: "/api/conversations/{name}/seen",
    summary: "Says that somebody has seen its answers",
    request: { params: Named },
    responses: answers(200, ConversationInfo),
  });
  app.openapi(seen, (context) => {
    const { name } = context.req.valid("param");
    conversations.seen(name);
    return context.json(conversations.get(name), 200);
  });

  const remove = createRoute({
    method: "delete",
    path: "/api/conversations/{name}",
    summary: "Cancels what waits or runs in it, then deletes its messages, settings and sessions",
    request: { params: Named },
    responses: answers(200, DeletedConversation),
  });
  app.openapi(remove, async (context) => context.json(await deleteConversation(context.req.valid("param").name), 200));
}

/** What fills the model's window, and how to empty it. */
function windowRoutes(app: OpenAPIHono, { contexts, renewConversation }: ConversationRoutesDeps): void {
  const use = createRoute({
    method: "get",
    path: "/api/conversations/{name}/context",
    summary: "What filled the model's window when this conversation was last asked for an answer; null before that",
    request: { params: Named },
    responses: answers(200, z.object({ context: ContextUse.nullable() })),
  });
  app.openapi(use, (context) => context.json({ context: contexts.of(context.req.valid("param").name) ?? null }, 200));

  const compact = createRoute({
    method: "post",
    path: "/api/conversations/{name}/compact",
    summary: "Empties the model's window but for a short record of what was said; 409 while a turn runs",
    request: { params: Named },
    responses: answers(200, ConversationInfo),
  });
  app.openapi(compact, (context) => context.json(renewConversation(context.req.valid("param").name, { forget: false }), 200));

  const clear = createRoute({
    method: "post",
    path: "/api/conversations/{name}/clear",
    summary: "Has the model begin anew, without what was said; the messages stay on disk. 409 while a turn runs",
    request: { params: Named },
    responses: answers(200, ConversationInfo),
  });
  app.openapi(clear, (context) => context.json(renewConversation(context.req.valid("param").name, { forget: true }), 200));
}

/** What a message can mention: the project's files, and commands. */
function completionRoutes(app: OpenAPIHono, { conversations, findNames, ownCommands }: ConversationRoutesDeps): void {
  const files = createRoute({
    method: "get",
    path: "/api/conversations/{name}/files",
    summary: "Files of the conversation's project whose paths hold some letters, the best first; none where it has no folder",
    request: {
      params: Named,
      query: z.object({
        q: z.string().max(500).default(""),
        limit: z.coerce.number().int().min(1).max(100).default(20),
      }),
    },
    responses: answers(200, z.object({ items: z.array(z.object({ path: z.string() })) })),
  });
  app.openapi(files, async (context) => {
    const { q, limit } = context.req.valid("query");
    const folder = conversations.folderOf(context.req.valid("param").name);
    const found = folder === null ? [] : await findNames(folder, q, limit);
    return context.json({ items: found.map((path) => ({ path })) }, 200);
  });

  const Command = z.object({ name: z.string(), description: z.string(), source: z.string(), text: z.string() });
  const commands = createRoute({
    method: "get",
    path: "/api/conversations/{name}/commands",
    summary: "The commands that the person, or the conversation's project, wrote",
    request: { params: Named },
    responses: answers(200, z.object({ items: z.array(Command) })),
  });
  app.openapi(commands, (context) =>
    context.json({ items: ownCommands(conversations.folderOf(context.req.valid("param").name)) }, 200),
  );
}
