import { createRoute, type OpenAPIHono, z } from "@hono/zod-openapi";
import { updateConfig } from "../../home/config.ts";
import type { LiveConfig } from "../../home/live-config.ts";
import { Budgets as BudgetsConfig } from "../../home/safety-config.ts";
import { BudgetKind, BudgetReport } from "../../protocol/budgets.ts";
import type { Emit } from "../../protocol/events.ts";
import type { Budgets } from "../../tools/budgets/budgets.ts";
import { answers, body } from "./shapes.ts";

export interface BudgetRoutesDeps {
  budgets: Pick<Budgets, "report" | "limitsChanged">;
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
    summary:
      "Sets all limits anew, or with `kind` that one alone; what is left out is not limited. Questions about what was set are withdrawn, and work that has room goes on",
    request: { query: z.object({ kind: BudgetKind.optional() }), body: body(BudgetsConfig) },
    responses: answers(200, BudgetReport),
  });
  app.openapi(set, (context) => {
    const { kind } = context.req.valid("query");
    const given = context.req.valid("json");
    const wanted = kind === undefined ? given : { ...settings.current().budgets, [kind]: given[kind] };
    settings.replace(updateConfig(configPath, { budgets: wanted }));
    budgets.limitsChanged({ set: kind === undefined ? BudgetKind.options : [kind] });
    emit({ type: "config.changed", data: { keys: ["budgets"] } });
    return context.json(budgets.report(), 200);
  });
}
