import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { ToolCallList, ToolCallRecord } from "../../protocol/calls.ts";
import type { Squads } from "../../squads/squads.ts";
import type { Messages } from "../../store/messages.ts";
import type { Gate } from "../../tools/gate.ts";
import { HttpError } from "./errors.ts";
import { answers, pageOf } from "./shapes.ts";

export interface CallRoutesDeps {
  callsOf: Gate["callsOf"];
  messages: Pick<Messages, "find">;
  squads: Pick<Squads, "task">;
}

/** The tool calls of a message or a task, oldest first. */
export function callRoutes(app: OpenAPIHono, { callsOf, messages, squads }: CallRoutesDeps): void {
  const owners = {
    messages: {
      noun: "message",
      find(id: string) {
        if (!messages.find(id)) throw new HttpError(404, "There is no message with this id.");
      },
    },
    tasks: { noun: "task", find: (id: string) => void squads.task(id) },
  };
  for (const [folder, { noun, find }] of Object.entries(owners)) {
    const route = createRoute({
      method: "get",
      path: `/api/${folder}/{id}/calls`,
      summary: `The tool calls of a ${noun}, oldest first`,
      request: {
        params: z.object({ id: z.string() }),
        query: z.object({
          limit: z.coerce.number().int().min(1).max(500).default(100),
          after: z.coerce.number().int().min(0).default(0),
          call: z.string().max(500).optional().describe("only the call with this id"),
        }),
      },
      responses: answers(200, ToolCallList),
    });
    app.openapi(route, (context) => {
      const { id } = context.req.valid("param");
      const { limit, after, call } = context.req.valid("query");
      find(id);
      const ask = (count: number) =>
        callsOf(id)
          .filter(({ seq, callId }) => seq > after && (call === undefined || callId === call))
          .slice(0, count);
      const { items, ...rest } = pageOf(limit, ask, ({ seq }) => String(seq));
      return context.json({ items: items.map((each) => ToolCallRecord.parse(each)), ...rest }, 200);
    });
  }
}
