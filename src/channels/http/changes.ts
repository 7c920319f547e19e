import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import type { Changes } from "../../orchestrator/changes.ts";
import { ChangeList, Difference, UndoResult } from "../../protocol/changes.ts";
import { Conversation } from "../../protocol/messages.ts";
import { HttpError } from "./errors.ts";
import { answers } from "./shapes.ts";

export interface ChangeRoutesDeps {
  changes: Changes;
}

const NOUNS = { messages: "message", tasks: "task" } as const;

/** The files that messages and tasks changed, and how to undo that. */
export function changeRoutes(app: OpenAPIHono, { changes }: ChangeRoutesDeps): void {
  const list = createRoute({
    method: "get",
    path: "/api/changes",
    summary: "The messages and tasks that changed files and can be undone, newest first",
    request: {
      query: z.object({
        conversation: Conversation.optional(),
        limit: z.coerce.number().int().min(1).max(100).default(20),
      }),
    },
    responses: answers(200, ChangeList),
  });
  app.openapi(list, async (context) => {
    const { conversation, limit } = context.req.valid("query");
    return context.json({ items: await changes.latest(conversation, limit) }, 200);
  });

  for (const [folder, noun] of Object.entries(NOUNS)) {
    const request = { params: z.object({ id: z.string() }) };
    const idOf = (id: string): string => {
      if (id.startsWith("t_") !== (noun === "task")) throw new HttpError(404, `There is no ${noun} with this id.`);
      return id;
    };
    const diff = createRoute({
      method: "get",
      path: `/api/${folder}/{id}/diff`,
      summary: `What a ${noun} changed in files: a unified difference, and each file with its state`,
      request,
      responses: answers(200, Difference),
    });
    app.openapi(diff, async (context) => context.json(await changes.diff(idOf(context.req.valid("param").id)), 200));

    const undo = createRoute({
      method: "post",
      path: `/api/${folder}/{id}/undo`,
      summary: `Brings back the files that a ${noun} changed and nobody has changed since; what is undone is done again`,
      request,
      responses: answers(200, UndoResult),
    });
    app.openapi(undo, async (context) => context.json(await changes.undo(idOf(context.req.valid("param").id)), 200));
  }
}
