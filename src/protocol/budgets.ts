import { z } from "zod";
import { Budgets, Limit } from "../home/safety-config.ts";

export const BudgetKind = z.enum(["turn", "task", "run", "conversation", "day"]);
export type BudgetKind = z.infer<typeof BudgetKind>;

/** The budgets that a change of limits sets, even if their limits stay the same. */
export function kindsIn(given: unknown): BudgetKind[] {
  return BudgetKind.options.filter((kind) => typeof given === "object" && given !== null && kind in given);
}

/** The amounts that a budget can limit. */
export const AMOUNTS = ["tokens", "calls", "money"] as const;
export type Amount = (typeof AMOUNTS)[number];

export const Amounts = z.object({ tokens: z.number(), calls: z.number(), money: z.number() });
export type Amounts = z.infer<typeof Amounts>;

/** One budget: its limit, its use, and what is left. */
export const BudgetUse = z
  .object({
    kind: BudgetKind,
    /** The id of its message, task, run, step or conversation, or the day. */
    name: z.string(),
    /** Set if the limit is a squad's own. */
    squad: z.string().optional(),
    /** Including raises. */
    limit: Limit,
    used: Amounts,
    left: Amounts.partial(),
    /** Whether the money is incomplete because a model has no price. */
    partial: z.boolean(),
    unpriced: z.array(z.string()),
    state: z.enum(["open", "near", "used up"]),
    /** The approval that asks to raise it. */
    approval: z.string().nullable(),
  })
  .meta({ id: "BudgetUse" });
export type BudgetUse = z.infer<typeof BudgetUse>;

/** The configured limits, and each budget that is in use now. */
export const BudgetReport = z.object({ limits: Budgets, items: z.array(BudgetUse) }).meta({ id: "BudgetReport" });
export type BudgetReport = z.infer<typeof BudgetReport>;
