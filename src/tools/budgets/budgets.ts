import type { Budgets as BudgetsConfig } from "../../home/safety-config.ts";
import type { Log } from "../../lib/log.ts";
import { BudgetKind, type BudgetReport } from "../../protocol/budgets.ts";
import type { Emit } from "../../protocol/events.ts";
import type { Spender, Spending } from "../../protocol/usage.ts";
import { createBudgetTable } from "../../store/budgets.ts";
import { isTemporary } from "../../store/faults.ts";
import { type Store, whenFree } from "../../store/open.ts";
import type { UsageLog } from "../../store/usage.ts";
import type { Approvals } from "../approvals/approvals.ts";
import { createHold } from "./hold.ts";
import { createLimits, limitOf } from "./limits.ts";
import type { Prices } from "./money.ts";
import { isAbout } from "./question.ts";
import { createReport } from "./report.ts";

export interface BudgetsDeps {
  store: Store;
  usage: Pick<UsageLog, "record" | "spent">;
  approvals: Pick<Approvals, "ask" | "use" | "retract" | "waiting">;
  config: () => { budgets: BudgetsConfig; prices: Prices };
  /** The budgets that a squad has set for itself; they can only be stricter than the global ones. */
  squadBudgets?: (slug: string) => BudgetsConfig | undefined;
  emit: Emit;
  log: Log;
  now?: () => Date;
  /** How often to check whether a budget that was used up has room again. */
  everyMs?: number;
}

/** How much may be used before a person is asked. */
export interface Budgets extends Spending {
  report(): BudgetReport;
  /**
   * Checks which limits have changed, of a squad or the global ones. New limits replace what raised the earlier ones of those
   * kinds, and questions about them are withdrawn: whoever still has no room asks again. `set` names the kinds that a person
   * has just set, even to the same limit.
   */
  limitsChanged(changed?: { squad?: string; set?: readonly BudgetKind[] }): void;
}

export function createBudgets(deps: BudgetsDeps): Budgets {
  const { store, usage, approvals, config, squadBudgets = () => undefined, emit, log, now = () => new Date(), everyMs } = deps;
  const table = createBudgetTable(store, now);
  const budgets = () => config().budgets;
  const limits = createLimits({ budgets, prices: () => config().prices, squadBudgets, usage, table, now });

  /** Announces once for each budget that little of it is left. */
  function warn(spender: Spender): void {
    for (const budget of limits.holdingFor(spender)) {
      const { kind, limit, used, isNear } = limits.standing(budget);
      if (!isNear) continue;
      store.soft(() => {
        if (!table.isNews(budget)) return;
        const shown = limitOf((amount) => limit[amount] !== undefined && used[amount]);
        const { conversation, owner } = spender;
        emit({ type: "budget.reached", ...(conversation && { conversation }), data: { kind, limit, used: shown, owner } });
      });
    }
  }

  function limitsChanged({ squad, set = [] }: { squad?: string; set?: readonly BudgetKind[] } = {}): void {
    const now = squad === undefined ? budgets() : squadBudgets(squad);
    const place = squad ?? "";
    const changed = store.transaction(() =>
      BudgetKind.options.filter((kind) => table.noteLimit(place, kind, now?.[kind], { isNew: set.includes(kind) })),
    );
    for (const question of approvals.waiting())
      if (changed.some((kind) => isAbout(question, kind))) approvals.retract(question.id, "the limit was changed");
  }

  // The file may have been edited while no daemon ran. A database that cannot be written yet does not prevent the start.
  void whenFree(() => limitsChanged()).catch((error: unknown) => log.error("changed budgets could not be noted", { error }));

  return {
    limitsChanged,
    record(spender, call) {
      usage.record(spender, call);
      try {
        warn(spender);
      } catch (error) {
        if (!isTemporary(error)) throw error;
        log.debug("the database cannot be written: a budget that is nearly used up is told of later", { owner: spender.owner });
      }
    },
    permit: createHold({ store, limits, table, approvals, log, ...(everyMs !== undefined && { everyMs }) }),
    report: createReport({ store, budgets, limits, table, now }),
  };
}
