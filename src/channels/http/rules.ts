import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { NewRule, Rule } from "../../protocol/rules.ts";
import type { Rules } from "../../wiki/rules.ts";
import { answers, body } from "./shapes.ts";
import type { ChannelOf } from "./wiki.ts";

export interface RuleRoutesDeps {
  rules: Rules;
}

export function ruleRoutes(app: OpenAPIHono, { rules }: RuleRoutesDeps, channelOf: ChannelOf): void {
  const list = createRoute({
    method: "get",
    path: "/api/rules",
    summary: "What the user ruled, the oldest first; the model is told of it in every session",
    responses: answers(200, z.object({ items: z.array(Rule) })),
  });
  app.openapi(list, (context) => context.json({ items: rules.list() }, 200));

  const add = createRoute({
    method: "post",
    path: "/api/rules",
    summary: "Adds a rule; one that is there already stays as it is",
    request: { body: body(NewRule) },
    responses: answers(201, Rule),
  });
  app.openapi(add, (context) => context.json(rules.add(context.req.valid("json"), `added by ${channelOf(context)}`), 201));

  const remove = createRoute({
    method: "delete",
    path: "/api/rules/{id}",
    summary: "Removes a rule",
    request: { params: z.object({ id: z.string().max(100) }) },
    responses: answers(200, Rule),
  });
  app.openapi(remove, (context) => context.json(rules.remove(context.req.valid("param").id), 200));
}
