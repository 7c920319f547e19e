import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { ModelCall, type Spender, UsageGroup, UsageSummary } from "../../protocol/usage.ts";
import type { Summaries } from "../../tools/budgets/summary.ts";
import { answers, body } from "./shapes.ts";

export interface UsageRoutesDeps {
  usageBy: Summaries;
  recordUsage: (spender: Spender, calls: readonly ModelCall[]) => void;
}

export function usageRoutes(app: OpenAPIHono, { usageBy, recordUsage }: UsageRoutesDeps): void {
  const spent = createRoute({
    method: "get",
    path: "/api/usage",
    summary: "What model calls used and cost, added up; every call is in one of the items, and the total is their sum",
    request: {
      query: z.object({
        by: UsageGroup.default("model"),
        since: z.string().max(40).optional().openapi({ description: "7d, a date, or all; conversations, tasks and runs: 30d" }),
      }),
    },
    responses: answers(200, UsageSummary),
  });
  app.openapi(spent, (context) => {
    const { by, since } = context.req.valid("query");
    return context.json(usageBy(by, since), 200);
  });

  const record = createRoute({
    method: "post",
    path: "/api/usage",
    summary: "Counts model calls that a command made by itself, as io setup does when it tries a model",
    request: { body: body(z.strictObject({ actor: z.enum(["doctor", "setup"]), calls: z.array(ModelCall).max(100) })) },
    responses: answers(201, z.object({ recorded: z.number().int() })),
  });
  app.openapi(record, (context) => {
    const { actor, calls } = context.req.valid("json");
    recordUsage({ owner: actor, actor, agent: actor, source: "cli" }, calls);
    return context.json({ recorded: calls.length }, 201);
  });
}
