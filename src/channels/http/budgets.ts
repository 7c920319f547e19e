import { createRoute, type OpenAPIHono } from "@hono/zod-openapi";
import { updateConfig } from "../../lib/config.ts";
import type { LiveConfig } from "../../lib/live-config.ts";
import { Budgets as BudgetsConfig } from "../../lib/safety-config.ts";
import { BudgetReport } from "../../protocol/budgets.ts";
import type { Emit } from "../../protocol/events.ts";
import type { Budgets } from "../../tools/budgets/budgets.ts";
import { answers, body } from "./shapes.ts";

export interface BudgetRoutesDeps {
  budgets: Pick<Budgets, "report">;
  configPath: string;
  settings: LiveConfig;
  emit: Emit;
}

export function budgetRoutes(app: OpenAPIHono, { budgets, configPath, settings, emit }: BudgetRoutesDeps): void {
  const show = createRoute({
    method: "get",
    path: "/api/budgets",
    summary: "The limits, and what is used and left of each: today's, and those of everything that runs",
    responses: answers(200, BudgetReport),
  });
  app.openapi(show, (context) => context.json(budgets.report(), 200));

  const set = createRoute({
    method: "put",
    path: "/api/budgets",
    summary: "Sets all limits anew; what is left out is not limited. Work that has room again goes on",
    request: { body: body(BudgetsConfig) },
    responses: answers(200, BudgetReport),
  });
  app.openapi(set, (context) => {
    settings.replace(updateConfig(configPath, { budgets: context.req.valid("json") }));
    emit({ type: "config.changed", data: { keys: ["budgets"] } });
    return context.json(budgets.report(), 200);
  });
}
