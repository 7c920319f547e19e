import { z } from "zod";
import { Budgets, Limit } from "../home/safety-config.ts";

export const BudgetKind = z.enum(["turn", "task", "run", "conversation", "day"]);
export type BudgetKind = z.infer<typeof BudgetKind>;

/** The budgets that a change of limits names: each is set by it, also one that stays as it was. */
export function kindsIn(given: unknown): BudgetKind[] {
  return BudgetKind.options.filter((kind) => typeof given === "object" && given !== null && kind in given);
}

/** What can be limited. */
export const AMOUNTS = ["tokens", "calls", "money"] as const;
export type Amount = (typeof AMOUNTS)[number];

export const Amounts = z.object({ tokens: z.number(), calls: z.number(), money: z.number() });
export type Amounts = z.infer<typeof Amounts>;

/** One budget: what may be used, what was, and what is left. */
export const BudgetUse = z
  .object({
    kind: BudgetKind,
    /** The message, task, run, step or conversation it is for, or the day. */
    name: z.string(),
    /** Set where the limit is a squad's own. */
    squad: z.string().optional(),
    /** With what it was raised by. */
    limit: Limit,
    used: Amounts,
    left: Amounts.partial(),
    /** Whether something is missing from the money, because a model has no price. */
    partial: z.boolean(),
    unpriced: z.array(z.string()),
    state: z.enum(["open", "near", "used up"]),
    /** The approval that waits because of it. */
    approval: z.string().nullable(),
  })
  .meta({ id: "BudgetUse" });
export type BudgetUse = z.infer<typeof BudgetUse>;

/** The limits as they are set, and each budget that is in use now. */
export const BudgetReport = z.object({ limits: Budgets, items: z.array(BudgetUse) }).meta({ id: "BudgetReport" });
export type BudgetReport = z.infer<typeof BudgetReport>;
