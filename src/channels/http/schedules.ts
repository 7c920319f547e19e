import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { NewSchedule, Occurrence, Schedule, ScheduleWithCost } from "../../protocol/schedules.ts";
import type { Cost } from "../../protocol/usage.ts";
import type { Schedules } from "../../schedules/schedules.ts";
import { answers, body, pageOf } from "./shapes.ts";
import type { ChannelOf } from "./wiki.ts";

export interface ScheduleRoutesDeps {
  schedules: Schedules;
  costOfSchedule: (id: string) => Cost;
}

const Id = z.object({ id: z.string().max(100) });
const Page = z.object({ limit: z.coerce.number().int().min(1).max(200).default(50), before: z.string().max(100).optional() });

export function scheduleRoutes(app: OpenAPIHono, { schedules, costOfSchedule }: ScheduleRoutesDeps, channelOf: ChannelOf): void {
  const list = createRoute({
    method: "get",
    path: "/api/schedules",
    summary: "What is done at set times, the latest first",
    request: { query: Page },
    responses: answers(200, z.object({ items: z.array(Schedule), next: z.string().optional() })),
  });
  app.openapi(list, (context) => {
    const { limit, before } = context.req.valid("query");
    return context.json(
      pageOf(
        limit,
        (count) => schedules.list({ limit: count, before }),
        ({ id }) => id,
      ),
      200,
    );
  });

  const add = createRoute({
    method: "post",
    path: "/api/schedules",
    summary: "Makes a schedule for a message, or with `squad` a task, or with `swarm` a run",
    request: { body: body(NewSchedule) },
    responses: answers(201, Schedule),
  });
  app.openapi(add, (context) => {
    const by = channelOf(context);
    const source = { channel: by === "terminal" ? ("tui" as const) : by };
    return context.json(schedules.add(context.req.valid("json"), { by: "person", source, conversation: "main" }), 201);
  });

  const one = createRoute({
    method: "get",
    path: "/api/schedules/{id}",
    summary: "One schedule, and what everything that it began has cost",
    request: { params: Id },
    responses: answers(200, ScheduleWithCost),
  });
  app.openapi(one, (context) => {
    const schedule = schedules.find(context.req.valid("param").id);
    return context.json({ ...schedule, cost: costOfSchedule(schedule.id) }, 200);
  });

  const remove = createRoute({
    method: "delete",
    path: "/api/schedules/{id}",
    summary: "Removes a schedule with the record of its occurrences; what it began goes on",
    request: { params: Id },
    responses: answers(200, z.object({ id: z.string() })),
  });
  app.openapi(remove, (context) => {
    const { id } = context.req.valid("param");
    schedules.remove(id);
    return context.json({ id }, 200);
  });

  singleRoutes(app, schedules);
}

/** Actions on one schedule. */
function singleRoutes(app: OpenAPIHono, schedules: Schedules): void {
  const pause = createRoute({
    method: "post",
    path: "/api/schedules/{id}/pause",
    summary: "Pauses a schedule",
    request: { params: Id },
    responses: answers(200, Schedule),
  });
  app.openapi(pause, (context) => context.json(schedules.pause(context.req.valid("param").id), 200));

  const resume = createRoute({
    method: "post",
    path: "/api/schedules/{id}/resume",
    summary: "Goes on with a paused schedule from now",
    request: { params: Id },
    responses: answers(200, Schedule),
  });
  app.openapi(resume, (context) => context.json(schedules.resume(context.req.valid("param").id), 200));

  const now = createRoute({
    method: "post",
    path: "/api/schedules/{id}/run",
    summary: "Does it now; the times at which it is due stay as they are",
    request: { params: Id },
    responses: answers(201, Occurrence),
  });
  app.openapi(now, (context) => context.json(schedules.runNow(context.req.valid("param").id), 201));

  const past = createRoute({
    method: "get",
    path: "/api/schedules/{id}/occurrences",
    summary: "Every time at which a schedule was due and what became of it, the latest first",
    request: { params: Id, query: Page },
    responses: answers(200, z.object({ items: z.array(Occurrence), next: z.string().optional() })),
  });
  app.openapi(past, (context) => {
    const { limit, before } = context.req.valid("query");
    const { id } = context.req.valid("param");
    return context.json(
      pageOf(
        limit,
        (count) => schedules.occurrences(id, { limit: count, before }),
        (occurrence) => occurrence.id,
      ),
      200,
    );
  });
}
