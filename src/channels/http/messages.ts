import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import type { Inbox } from "../../orchestrator/inbox.ts";
import { type Outbox, replyKey } from "../../orchestrator/outbox.ts";
import type { Steering } from "../../orchestrator/steering.ts";
import { MessageList, Queued } from "../../protocol/api.ts";
import { Conversation, Message, NewMessage, Words } from "../../protocol/messages.ts";
import type { EventLog } from "../../store/events.ts";
import type { Messages } from "../../store/messages.ts";
import { CARRIED } from "./carried.ts";
import { HttpError } from "./errors.ts";
import { answers, body, pageOf } from "./shapes.ts";

const MessageId = z.object({ id: z.string() });

export interface MessageRoutesDeps {
  inbox: Inbox;
  outbox: Pick<Outbox, "received">;
  messages: Messages;
  events: Pick<EventLog, "lastId">;
  steering: Pick<Steering, "say">;
}

export function messageRoutes(app: OpenAPIHono, { inbox, outbox, messages, events, steering }: MessageRoutesDeps): void {
  /** A finished message that leaves through here has reached somebody. */
  const handOver = (message: Message): Message => {
    if (message.finishedAt !== null) outbox.received(replyKey(message.id), CARRIED);
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
    summary: "Says something to IO; it is on disk when this answers",
    request: { query: z.object({ wait: z.enum(["true", "false"]).optional() }), body: body(NewMessage) },
    responses: { ...answers(202, Queued), ...answers(200, Message) },
  });
  app.openapi(submit, async (context) => {
    const { text, conversation, source, idempotencyKey, folder } = context.req.valid("json");
    const submission = { text, conversation, source: { channel: source, ...(folder && { folder }) }, idempotencyKey };
    if (context.req.valid("query").wait === "true") return context.json(handOver(await inbox.ask(submission)), 200);
    return context.json({ id: inbox.submit(submission).id, status: "queued" as const }, 202);
  });

  const list = createRoute({
    method: "get",
    path: "/api/messages",
    summary: "The messages of a conversation, newest first",
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
    // Whoever follows the events from here on misses nothing that this list does not know yet.
    context.header("last-event-id", String(events.lastId()));
    const { items, ...rest } = pageOf(limit, ask, ({ id }) => id);
    return context.json({ items: items.map(handOver), ...rest }, 200);
  });

  const one = createRoute({
    method: "get",
    path: "/api/messages/{id}",
    summary: "One message",
    request: { params: MessageId },
    responses: answers(200, Message),
  });
  app.openapi(one, (context) => context.json(handOver(find(context.req.valid("param").id)), 200));

  const cancel = createRoute({
    method: "post",
    path: "/api/messages/{id}/cancel",
    summary: "Ends a message that waits or runs",
    request: { params: MessageId },
    responses: answers(200, Message),
  });
  app.openapi(cancel, async (context) => {
    const { id } = context.req.valid("param");
    find(id);
    if (!inbox.cancel(id)) throw new HttpError(409, "This message is finished already.");
    return context.json(handOver(await inbox.finished(id)), 200);
  });

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
