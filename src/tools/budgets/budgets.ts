import type { Log } from "../../lib/log.ts";
import type { Budgets as BudgetsConfig } from "../../lib/safety-config.ts";
import type { BudgetReport } from "../../protocol/budgets.ts";
import type { Emit } from "../../protocol/events.ts";
import type { Spender, Spending } from "../../protocol/usage.ts";
import { createBudgetTable } from "../../store/budgets.ts";
import { isBusy, type Store } from "../../store/open.ts";
import type { UsageLog } from "../../store/usage.ts";
import type { Approvals } from "../approvals/approvals.ts";
import { createHold } from "./hold.ts";
import { createLimits, limitOf } from "./limits.ts";
import type { Prices } from "./money.ts";
import { createReport } from "./report.ts";

export interface BudgetsDeps {
  store: Store;
  usage: Pick<UsageLog, "record" | "spent">;
  approvals: Pick<Approvals, "ask" | "use" | "decide">;
  config: () => { budgets: BudgetsConfig; prices: Prices };
  /** What a squad has set for itself; it only tightens what holds for all. */
  squadBudgets?: (slug: string) => BudgetsConfig | undefined;
  emit: Emit;
  log: Log;
  now?: () => Date;
  /** How often it is looked whether a budget that was used up has room again. */
  everyMs?: number;
}

/** How much may be used before a person is asked. */
export interface Budgets extends Spending {
  report(): BudgetReport;
}

export function createBudgets(deps: BudgetsDeps): Budgets {
  const { store, usage, approvals, config, squadBudgets = () => undefined, emit, log, now = () => new Date(), everyMs } = deps;
  const table = createBudgetTable(store, now);
  const budgets = () => config().budgets;
  const limits = createLimits({ budgets, prices: () => config().prices, squadBudgets, usage, table, now });

  /** Says once of each budget that little of it is left. */
  function warn(spender: Spender): void {
    for (const budget of limits.holdingFor(spender)) {
      const { kind, limit, used, isNear } = limits.standing(budget);
      if (!isNear) continue;
      store.soft(() =>
        store.transaction(() => {
          if (!table.isNews(budget)) return;
          const shown = limitOf((amount) => limit[amount] !== undefined && used[amount]);
          const { conversation, owner } = spender;
          emit({ type: "budget.reached", ...(conversation && { conversation }), data: { kind, limit, used: shown, owner } });
        }),
      );
    }
  }

  return {
    record(spender, call) {
      usage.record(spender, call);
      try {
        warn(spender);
      } catch (error) {
        if (!isBusy(error)) throw error;
        log.debug("the database is busy: a budget that is nearly used up is told of later", { owner: spender.owner });
      }
    },
    permit: createHold({ store, limits, table, approvals, log, ...(everyMs !== undefined && { everyMs }) }),
    report: createReport({ store, budgets, limits, table, now }),
  };
}
