import type { Budgets, Limit } from "../../home/safety-config.ts";
import { AMOUNTS, type Amount, type Amounts, type BudgetKind } from "../../protocol/budgets.ts";
import type { Cost, Spender } from "../../protocol/usage.ts";
import type { BudgetTable } from "../../store/budgets.ts";
import type { Spent, UsageLog } from "../../store/usage.ts";
import { costOf, type Prices } from "./money.ts";

export interface LimitsDeps {
  budgets: () => Budgets;
  prices: () => Prices;
  /** The budgets that a squad has set for itself. */
  squadBudgets: (slug: string) => Budgets | undefined;
  usage: Pick<UsageLog, "spent">;
  table: Pick<BudgetTable, "raised">;
  now: () => Date;
}

/** A budget that a spender's next call counts against. */
export interface Budget {
  kind: BudgetKind;
  name: string;
  /** Set if the limit is a squad's own. */
  squad?: string;
  /** The squads whose own limits apply to it. */
  places: readonly string[];
  /** The configured limit, before anybody raised it. */
  base: Limit;
  spent: Spent;
}

/** The state of a budget. */
export interface Standing extends Budget {
  limit: Limit;
  used: Amounts;
  cost: Cost;
  /** The amounts that are used up. */
  over: Amount[];
  isNear: boolean;
  /** How often a person has decided on it. */
  decisions: number;
}

const NEAR = 0.8;

/** Which budgets apply to whom, and the state of each. */
export function createLimits({ budgets, prices, squadBudgets, usage, table, now }: LimitsDeps) {
  function standing(budget: Budget): Standing {
    const { base, spent } = budget;
    const { decisions, ...raised } = table.raised(budget);
    const cost = costOf(usage.spent(spent), prices());
    const used: Amounts = { tokens: cost.inputTokens + cost.outputTokens, calls: cost.calls, money: cost.money };
    const limit = limitOf((amount) => base[amount] !== undefined && base[amount] + raised[amount]);
    const reaches = (share: number) =>
      AMOUNTS.filter((amount) => used[amount] >= (limit[amount] ?? Number.POSITIVE_INFINITY) * share);
    return { ...budget, limit, used, cost, decisions, over: reaches(1), isNear: reaches(NEAR).length > 0 };
  }

  /** The budgets with a limit, narrowest first. */
  function holdingFor(spender: Spender): Budget[] {
    const { squad } = spender;
    const all = budgets();
    const own = squad === undefined ? undefined : squadBudgets(squad);
    const day = now().toISOString().slice(0, 10);
    const places = squad === undefined ? [] : [squad];
    const list: (Omit<Budget, "base"> & { base: Limit | undefined })[] = [
      ...narrow(spender).map((each) => ({ ...each, places, base: tightest(all[each.kind], own?.[each.kind]) })),
      { kind: "day", name: day, places: [], base: all.day, spent: { of: "day", day } },
      ...(squad === undefined ? [] : [{ ...squadDay(day, squad), base: own?.day }]),
    ];
    return list.flatMap(({ base, ...rest }) => (base && Object.keys(base).length > 0 ? [{ ...rest, base }] : []));
  }

  return { standing, holdingFor };
}
export type Limits = ReturnType<typeof createLimits>;

/** A squad's day counts only what the squad itself uses. */
function squadDay(day: string, squad: string): Omit<Budget, "base"> {
  return { kind: "day", name: `${day}/${squad}`, squad, places: [squad], spent: { of: "day", day, squad } };
}

function narrow({ owner, task, run, step, conversation }: Spender): Omit<Budget, "base" | "places">[] {
  const turn: Omit<Budget, "base" | "places"> =
    run !== undefined && step !== undefined
      ? { kind: "turn", name: `${run}/${step}`, spent: { of: "step", run, step } }
      : { kind: "turn", name: owner, spent: { of: "owner", owner } };
  const named = (kind: "task" | "run" | "conversation", name: string | undefined): Omit<Budget, "base" | "places">[] =>
    name === undefined ? [] : [{ kind, name, spent: { of: kind, name } }];
  return [turn, ...named("task", task), ...named("run", run), ...named("conversation", conversation)];
}

/** The smaller of both limits, for each amount. */
export function tightest(a: Limit | undefined, b: Limit | undefined): Limit | undefined {
  if (!a || !b) return a ?? b;
  return limitOf((amount) => {
    const set = [a[amount], b[amount]].filter((value) => value !== undefined);
    return set.length > 0 && Math.min(...set);
  });
}

/** Builds a limit amount by amount; false means no limit. */
export function limitOf(of: (amount: Amount) => number | false): Limit {
  const entries = AMOUNTS.map((amount) => [amount, of(amount)] as const).filter(([, value]) => value !== false);
  return Object.fromEntries(entries) as Limit;
}
