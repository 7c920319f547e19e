import type { Approval } from "../../protocol/approvals.ts";
import type { BudgetKind } from "../../protocol/budgets.ts";
import type { Spender } from "../../protocol/usage.ts";
import type { ApprovalTable } from "../../store/approvals.ts";
import { type Asked, hashOf } from "../approvals/asked.ts";
import type { Standing } from "./limits.ts";
import { raiseOf, tellAmounts, tellUsed } from "./words.ts";

/** What a person is asked when a budget is used up. All who are held up ask the same, in any process and after a restart. */
export function questionOf(reached: Standing, { owner, actor }: Pick<Spender, "owner" | "actor">, signal: AbortSignal): Asked {
  const { kind, name, squad, decisions } = reached;
  return {
    kind: "budget",
    ...{ owner, actor, tool: "budget", args: null, key: `budget ${kind} ${name} ${decisions}`, signal },
    summary: `${tellUsed(reached)}. Allow raises the limit by ${tellAmounts(raiseOf(reached))}, or by what a note such as "5k tokens" says; deny stops the work.`,
    rule: squad === undefined ? `${ruleOf(kind)} in config.json` : `${ruleOf(kind)} of the squad ${squad}`,
  };
}

const ruleOf = (kind: BudgetKind) => `budgets.${kind}`;

/** Whether a question is about a budget of this kind. */
export function isAbout({ kind, rule }: Pick<Approval, "kind" | "rule">, budget: BudgetKind): boolean {
  return kind === "budget" && rule?.split(" ", 1)[0] === ruleOf(budget);
}

/** The id of the approval that waits because of a budget. */
export function waitingOn(reached: Standing, rows: Pick<ApprovalTable, "standing">): string | undefined {
  const asked = questionOf(reached, { owner: "", actor: "" }, new AbortController().signal);
  return rows.standing(hashOf(asked)).find(({ state }) => state === "waiting")?.id;
}
