import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { MessageProgress } from "../../protocol/messages.ts";
import { addToolNews } from "../../protocol/tool-news.ts";
import type { EventLog } from "../../store/events.ts";
import type { Messages } from "../../store/messages.ts";
import { HttpError } from "./errors.ts";
import { answers } from "./shapes.ts";

export interface ProgressRoutesDeps {
  messages: Pick<Messages, "find">;
  events: Pick<EventLog, "turnSoFar">;
}

/** What a client missed that joins in the middle of a turn. */
export function progressRoutes(app: OpenAPIHono, { messages, events }: ProgressRoutesDeps): void {
  const route = createRoute({
    method: "get",
    path: "/api/messages/{id}/progress",
    summary: "What a running turn has said and done so far; events with a greater id than upTo go on from there",
    request: { params: z.object({ id: z.string() }) },
    responses: answers(200, MessageProgress),
  });
  app.openapi(route, (context) => {
    const message = messages.find(context.req.valid("param").id);
    if (!message) throw new HttpError(404, "There is no message with this id.");
    const { events: heard, upTo } = events.turnSoFar(message.conversation, message.id);
    const progress: MessageProgress = { id: message.id, text: "", tools: [], upTo };
    for (const { type, data } of heard) {
      if (type === "message.delta") progress.text = (data.restarted ? "" : progress.text) + data.text;
      if (type === "message.tool") progress.tools = addToolNews(progress.tools, data);
    }
    return context.json(progress, 200);
  });
}
