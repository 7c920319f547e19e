import type { Budgets } from "../../home/safety-config.ts";
import type { BudgetReport, BudgetUse } from "../../protocol/budgets.ts";
import type { Spender } from "../../protocol/usage.ts";
import { createApprovalTable } from "../../store/approvals.ts";
import type { BudgetTable } from "../../store/budgets.ts";
import type { Store } from "../../store/open.ts";
import { type Budget, type Limits, limitOf } from "./limits.ts";
import { waitingOn } from "./question.ts";

export interface ReportDeps {
  store: Store;
  budgets: () => Budgets;
  limits: Limits;
  table: Pick<BudgetTable, "running">;
  now: () => Date;
}

/** The limits, and the state of the budgets of the day and of everything that runs. */
export function createReport({ store, budgets, limits, table, now }: ReportDeps) {
  const approvals = createApprovalTable(store);

  const useOf = (budget: Budget): BudgetUse => {
    const standing = limits.standing(budget);
    const { kind, name, squad, limit, used, cost, over, isNear } = standing;
    return {
      ...{ kind, name, ...(squad !== undefined && { squad }), limit, used },
      left: limitOf((amount) => limit[amount] !== undefined && Math.max(0, rounded(limit[amount] - used[amount]))),
      ...{ partial: cost.partial, unpriced: cost.unpriced },
      state: over.length > 0 ? "used up" : isNear ? "near" : "open",
      approval: (over.length > 0 && waitingOn(standing, approvals)) || null,
    };
  };

  return (): BudgetReport => {
    const { messages, tasks, runs } = table.running();
    const nobody = { actor: "", agent: "" };
    const spenders: Spender[] = [
      ...messages.map(({ id, conversation }) => ({ ...nobody, owner: id, conversation })),
      ...tasks.map(({ id, squad, conversation }) => ({
        ...{ ...nobody, owner: id, task: id, squad, conversation: conversation ?? undefined },
      })),
      ...runs.map(({ id, squad, conversation }) => ({
        ...{ ...nobody, owner: id, run: id, squad: squad ?? undefined, conversation: conversation ?? undefined },
      })),
    ];
    const day = now().toISOString().slice(0, 10);
    const budgetsNow = new Map<string, Budget>();
    const add = (budget: Budget) => budgetsNow.set(`${budget.kind} ${budget.name}`, budget);
    // Today is reported even if nothing limits it.
    add({ kind: "day", name: day, places: [], base: budgets().day ?? {}, spent: { of: "day", day } });
    // The turns of a run are its steps, which begin and end on their own.
    for (const spender of spenders)
      for (const budget of limits.holdingFor(spender)) if (spender.run === undefined || budget.kind !== "turn") add(budget);
    return { limits: budgets(), items: [...budgetsNow.values()].map(useOf) };
  };
}

const MILLIONTHS = 1_000_000;
const rounded = (value: number) => Math.round(value * MILLIONTHS) / MILLIONTHS;
