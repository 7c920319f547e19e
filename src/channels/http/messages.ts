import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import type { ConversationSettings } from "../../orchestrator/conversation-settings.ts";
import type { Inbox } from "../../orchestrator/inbox.ts";
import { type Outbox, replyKey } from "../../orchestrator/outbox.ts";
import type { Steering } from "../../orchestrator/steering.ts";
import { MessageList, Queued } from "../../protocol/api.ts";
import { Conversation, Message, NewMessage, Words } from "../../protocol/messages.ts";
import { type Attachments, isNamedFile } from "../../store/attachments.ts";
import type { EventLog } from "../../store/events.ts";
import type { Messages } from "../../store/messages.ts";
import { HttpError } from "./errors.ts";
import { FETCHED_SOURCES } from "./fetched-sources.ts";
import { answers, body, pageOf } from "./shapes.ts";

const MessageId = z.object({ id: z.string() });

export interface MessageRoutesDeps {
  inbox: Inbox;
  outbox: Pick<Outbox, "received">;
  messages: Messages;
  events: Pick<EventLog, "lastId">;
  steering: Pick<Steering, "say">;
  conversations: Pick<ConversationSettings, "seen">;
  attachments: Pick<Attachments, "find">;
  /** Ends the commands that a message left running; false if there were none. */
  background: { stopOf(id: string): Promise<boolean> };
}

export function messageRoutes(app: OpenAPIHono, deps: MessageRoutesDeps): void {
  const { inbox, outbox, messages, events, conversations, attachments: files, background } = deps;
  /** Marks a finished message as delivered, because this response shows it to somebody. */
  const markDelivered = (message: Message): Message => {
    if (message.finishedAt !== null) outbox.received(replyKey(message.id), FETCHED_SOURCES);
    return message;
  };
  const find = (id: string): Message => {
    const message = messages.find(id);
    if (!message) throw new HttpError(404, "There is no message with this id.");
    return message;
  };

  const submit = createRoute({
    method: "post",
    path: "/api/messages",
    summary:
      "Says something to IO; it is on disk when this answers. The same idempotencyKey with the same words answers with the first message",
    request: { query: z.object({ wait: z.enum(["true", "false"]).optional() }), body: body(NewMessage) },
    responses: { ...answers(202, z.union([Message, Queued])), ...answers(200, Message) },
  });
  app.openapi(submit, async (context) => {
    const { text, conversation, source, idempotencyKey, folder, attachments = [] } = context.req.valid("json");
    const earlier = idempotencyKey === undefined ? undefined : messages.findByKey(idempotencyKey);
    const isSame = (other: Message) =>
      other.text === text &&
      other.conversation === conversation &&
      other.attachments.flatMap(({ id }) => (isNamedFile(id) ? [] : [id])).join() === attachments.join();
    if (earlier && !isSame(earlier))
      throw new HttpError(409, "This idempotencyKey was used for another message. Take a new key for new words.");
    if (attachments.some((id) => files.find(id) === undefined))
      throw new HttpError(404, "There is no file with one of these ids. Send it first: POST /api/files.");
    const sender = { channel: source, ...(folder && { folder }) };
    const submission = { text, conversation, source: sender, idempotencyKey, attachments };
    if (context.req.valid("query").wait === "true") return context.json(markDelivered(await inbox.ask(submission)), 200);
    const message = inbox.submit(submission);
    return context.json(message.finishedAt === null ? { id: message.id, status: message.status } : markDelivered(message), 202);
  });

  const list = createRoute({
    method: "get",
    path: "/api/messages",
    summary: "The messages of a conversation, newest first. Whoever asks for the newest has seen its answers",
    request: {
      query: z.object({
        conversation: Conversation.default("main"),
        limit: z.coerce.number().int().min(1).max(200).default(50),
        before: z.string().optional(),
      }),
    },
    responses: answers(200, MessageList),
  });
  app.openapi(list, (context) => {
    const { conversation, limit, before } = context.req.valid("query");
    const ask = (count: number) => messages.list(conversation, count, before);
    // Following the events from this id misses nothing that is newer than this list.
    context.header("last-event-id", String(events.lastId()));
    const { items, ...rest } = pageOf(limit, ask, ({ id }) => id);
    if (before === undefined) conversations.seen(conversation);
    return context.json({ items: items.map(markDelivered), ...rest }, 200);
  });

  const one = createRoute({
    method: "get",
    path: "/api/messages/{id}",
    summary: "One message; with `waitMs`, once it has ended or this time is over",
    request: { params: MessageId, query: z.object({ waitMs: z.coerce.number().int().min(0).max(30_000).default(0) }) },
    responses: answers(200, Message),
  });
  app.openapi(one, async (context) => {
    const { id } = context.req.valid("param");
    const { waitMs } = context.req.valid("query");
    if (waitMs > 0 && find(id).finishedAt === null) await within(waitMs, inbox.finished(id));
    return context.json(markDelivered(find(id)), 200);
  });

  const cancel = createRoute({
    method: "post",
    path: "/api/messages/{id}/cancel",
    summary: "Ends a message that waits or runs, or the commands that a finished one left running; 409 where there are none",
    request: { params: MessageId },
    responses: answers(200, Message),
  });
  app.openapi(cancel, async (context) => {
    const { id } = context.req.valid("param");
    find(id);
    if (!inbox.cancel(id) && !(await background.stopOf(id))) throw new HttpError(409, "This message is finished already.");
    return context.json(markDelivered(await inbox.finished(id)), 200);
  });

  wordRoutes(app, deps, find);
}

/** Changes the text of an unfinished message. */
function wordRoutes(
  app: OpenAPIHono,
  { inbox, steering }: Pick<MessageRoutesDeps, "inbox" | "steering">,
  find: (id: string) => Message,
): void {
  const rewrite = createRoute({
    method: "patch",
    path: "/api/messages/{id}",
    summary: "New words for a message that still waits",
    request: { params: MessageId, body: body(Words) },
    responses: answers(200, Message),
  });
  app.openapi(rewrite, (context) => {
    const { id } = context.req.valid("param");
    find(id);
    if (!inbox.rewrite(id, context.req.valid("json").text))
      throw new HttpError(409, "This message does not wait any more. Steer its turn, or send another message.");
    return context.json(find(id), 200);
  });

  const steer = createRoute({
    method: "post",
    path: "/api/messages/{id}/steer",
    summary: "Says something into the turn that runs",
    request: { params: MessageId, body: body(Words) },
    responses: answers(200, Message),
  });
  app.openapi(steer, (context) => {
    const { id } = context.req.valid("param");
    const { status } = find(id);
    if (!steering.say(id, context.req.valid("json").text))
      throw new HttpError(
        409,
        status === "queued"
          ? "This message still waits: change its words (PATCH) instead."
          : "This message does not run any more. Send it as a message of its own.",
      );
    return context.json(find(id), 200);
  });
}

/** Waits for some work, but no longer than this. */
async function within(ms: number, work: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((done) => {
    timer = setTimeout(done, ms);
  });
  await Promise.race([work, late]);
  clearTimeout(timer);
}
