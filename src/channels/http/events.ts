import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { streamSSE } from "hono/streaming";
import type { Broadcast } from "../../lib/broadcast.ts";
import type { ConversationSettings } from "../../orchestrator/conversation-settings.ts";
import { type Outbox, replyKey } from "../../orchestrator/outbox.ts";
import type { DiskInfo } from "../../protocol/api.ts";
import { type Event, UNNUMBERED } from "../../protocol/events.ts";
import { Conversation } from "../../protocol/messages.ts";
import type { Words } from "../../protocol/runs.ts";
import type { EventLog } from "../../store/events.ts";
import type { Hub } from "../../store/hub.ts";
import { HttpError } from "./errors.ts";
import { FETCHED_SOURCES } from "./fetched-sources.ts";

const COMMENT_EVERY_MS = 15_000;
/** A client that falls this far behind is disconnected; it reconnects with its last id and misses nothing. */
const MAX_BEHIND = 5_000;
const BATCH = 500;

const route = createRoute({
  method: "get",
  path: "/api/events",
  summary: "News as it happens; Last-Event-ID replays what was missed",
  request: {
    query: z.object({
      conversation: Conversation.optional(),
      words: z
        .enum(["true", "false"])
        .optional()
        .describe("Also what the agents of runs and plans say, as they say it: events `said`, without an id, never replayed."),
    }),
    headers: z.object({ "last-event-id": z.string().optional() }),
  },
  responses: { 200: { description: "Server-Sent Events", content: { "text/event-stream": { schema: z.string() } } } },
});

export interface EventRoutesDeps {
  hub: Hub;
  events: EventLog;
  outbox: Pick<Outbox, "received">;
  conversations: Pick<ConversationSettings, "follow">;
  disk: () => DiskInfo;
  /** What the agents of runs and plans are saying. */
  words: Pick<Broadcast<Words>, "subscribe">;
}

/** Streams events as they happen, and those that a client missed. */
export function eventRoutes(app: OpenAPIHono, { hub, events, outbox, conversations, disk, words }: EventRoutesDeps): void {
  app.openAPIRegistry.registerPath(route);
  app.get("/api/events", (context) => {
    const wanted = context.req.query("conversation");
    if (wanted !== undefined && !Conversation.safeParse(wanted).success)
      throw new HttpError(400, "conversation: is not a conversation's name");
    const isFor = (event: Event) => wanted === undefined || event.conversation === undefined || event.conversation === wanted;
    const withWords = context.req.query("words") === "true";
    const lastSeen = Number(context.req.header("last-event-id") ?? Number.NaN);

    return streamSSE(context, async (stream) => {
      const queue: (Event | Words)[] = [];
      let wake: () => void = () => {};
      const take = (each: Event | Words) => {
        queue.push(each);
        if (queue.length > MAX_BEHIND) stream.abort();
        wake();
      };
      // A client that follows one conversation has it open; one that follows everything may be looking at another.
      const open = wanted === undefined ? [] : [conversations.follow(wanted)];
      const subscriptions = [hub.subscribe(take), ...(withWords ? [words.subscribe(take)] : []), ...open];
      const comment = setInterval(() => void stream.write(": here\n\n"), COMMENT_EVERY_MS);
      stream.onAbort(() => wake());
      let sent = Number.isFinite(lastSeen) ? lastSeen : events.lastId();
      const send = async (event: Event) => {
        if (event.id !== UNNUMBERED) {
          if (event.id <= sent) return;
          sent = event.id;
        }
        if (!isFor(event)) return;
        await stream.writeSSE({ id: String(sent), event: event.type, data: JSON.stringify(event.data) });
        if (event.type === "message.finished" && !stream.aborted) outbox.received(replyKey(event.data.id), FETCHED_SOURCES);
      };
      try {
        // Tells the client its position from the start, so that it can resume from there.
        await stream.write(`: hello\nid: ${sent}\n\n`);
        if (disk().state === "full") await send({ id: UNNUMBERED, type: "disk.changed", data: disk() });
        for (let missed = events.since(sent, BATCH); missed.upTo > sent && !stream.aborted; missed = events.since(sent, BATCH)) {
          for (const event of missed.events) await send(event);
          sent = missed.upTo;
        }
        while (!stream.aborted) {
          const next = queue.shift();
          if (next && "owner" in next) await stream.writeSSE({ event: "said", data: JSON.stringify(next) });
          else if (next) await send(next);
          else
            await new Promise<void>((resolve) => {
              wake = resolve;
            });
        }
      } finally {
        clearInterval(comment);
        for (const unsubscribe of subscriptions) unsubscribe();
      }
    });
  });
}
