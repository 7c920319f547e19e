import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import type { Pulls } from "../../forge/pulls.ts";
import { NewPullRequest, PullRequest } from "../../protocol/pulls.ts";
import { HttpError } from "./errors.ts";
import { answers, body, pageOf } from "./shapes.ts";

export interface PullRoutesDeps {
  pulls: Pulls;
}

const Id = z.object({ id: z.string().max(100) });
const Page = z
  .object({ limit: z.coerce.number().int().min(1).max(200).default(50), before: z.string().max(100).optional() })
  .extend({
    owner: z
      .string()
      .max(100)
      .optional()
      .describe("Only those of this run or task, in the order in which they are to be merged."),
  });

/** The pull requests of runs and tasks. */
export function pullRoutes(app: OpenAPIHono, { pulls }: PullRoutesDeps): void {
  const list = createRoute({
    method: "get",
    path: "/api/pulls",
    summary: "Pull requests of runs and tasks, the latest first",
    request: { query: Page },
    responses: answers(200, z.object({ items: z.array(PullRequest), next: z.string().optional() })),
  });
  app.openapi(list, (context) => {
    const { limit, before, owner } = context.req.valid("query");
    if (owner !== undefined) return context.json({ items: pulls.together(owner) }, 200);
    return context.json(
      pageOf(
        limit,
        (count) => pulls.list({ limit: count, before }),
        ({ id }) => id,
      ),
      200,
    );
  });

  const request = createRoute({
    method: "post",
    path: "/api/pulls",
    summary: "Pushes the branch of a run or a task and opens a pull request, or brings the one that is there up to date",
    request: { body: body(NewPullRequest) },
    responses: answers(201, PullRequest),
  });
  app.openapi(request, (context) => {
    const { run, task, ...options } = context.req.valid("json");
    if ((run === undefined) === (task === undefined)) throw new HttpError(400, "Name a run or a task.");
    const owner = run !== undefined ? { kind: "run" as const, id: run } : { kind: "task" as const, id: task ?? "" };
    return context.json(pulls.request(owner, options), 201);
  });

  const one = createRoute({
    method: "get",
    path: "/api/pulls/{id}",
    summary: "One pull request, by its own id or by that of its run or task",
    request: { params: Id },
    responses: answers(200, PullRequest),
  });
  app.openapi(one, (context) => context.json(pulls.find(context.req.valid("param").id), 200));
}
