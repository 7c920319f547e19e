import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { UsageGroup, UsageSummary } from "../../protocol/usage.ts";
import type { Summaries } from "../../tools/budgets/summary.ts";
import { answers } from "./shapes.ts";

export interface UsageRoutesDeps {
  usageBy: Summaries;
}

export function usageRoutes(app: OpenAPIHono, { usageBy }: UsageRoutesDeps): void {
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
}
