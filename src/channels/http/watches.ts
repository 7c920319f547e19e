import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import type { Watches } from "../../forge/watches.ts";
import { NewWatch, Watch, WatchDetail } from "../../protocol/watches.ts";
import { answers, body } from "./shapes.ts";

export interface WatchRoutesDeps {
  watches: Watches;
}

const Id = z.object({ id: z.string().max(100) });

/** Watched repositories. */
export function watchRoutes(app: OpenAPIHono, { watches }: WatchRoutesDeps): void {
  const list = createRoute({
    method: "get",
    path: "/api/watches",
    summary: "Watched repositories",
    responses: answers(200, z.object({ items: z.array(Watch) })),
  });
  app.openapi(list, (context) => context.json({ items: watches.list() }, 200));

  const add = createRoute({
    method: "post",
    path: "/api/watches",
    summary: "Watches the repository of a project for a label, a mention, reviews or failed checks",
    request: { body: body(NewWatch) },
    responses: answers(201, Watch),
  });
  app.openapi(add, async (context) => context.json(await watches.add(context.req.valid("json")), 201));

  const one = createRoute({
    method: "get",
    path: "/api/watches/{id}",
    summary: "One watched repository: when it was looked at, what was seen, what was done and why not",
    request: { params: Id },
    responses: answers(200, WatchDetail),
  });
  app.openapi(one, (context) => context.json(watches.show(context.req.valid("param").id), 200));

  const remove = createRoute({
    method: "delete",
    path: "/api/watches/{id}",
    summary: "Stops watching a repository; what was begun goes on",
    request: { params: Id },
    responses: answers(200, z.object({ id: z.string() })),
  });
  app.openapi(remove, (context) => {
    const { id } = context.req.valid("param");
    watches.remove(id);
    return context.json({ id }, 200);
  });

  const pause = createRoute({
    method: "post",
    path: "/api/watches/{id}/pause",
    summary: "Stops looking at a repository until it is resumed",
    request: { params: Id },
    responses: answers(200, Watch),
  });
  app.openapi(pause, (context) => context.json(watches.pause(context.req.valid("param").id), 200));

  const resume = createRoute({
    method: "post",
    path: "/api/watches/{id}/resume",
    summary: "Looks at a repository again",
    request: { params: Id },
    responses: answers(200, Watch),
  });
  app.openapi(resume, (context) => context.json(watches.resume(context.req.valid("param").id), 200));
}
