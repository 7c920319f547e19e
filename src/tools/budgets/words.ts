import type { Limit } from "../../home/safety-config.ts";
import { AMOUNTS, type Amount, type Amounts } from "../../protocol/budgets.ts";
import type { Standing } from "./limits.ts";

/** Describes a budget that is used up, in a sentence without its full stop. */
export function tellUsed({ kind, name, squad, over, used, limit }: Standing): string {
  const whose = {
    turn: `the turn ${name}`,
    task: `the task ${name}`,
    run: `the run ${name}`,
    conversation: `the conversation ${JSON.stringify(name)}`,
    day: squad === undefined ? `today (${name}, UTC)` : `today, the squad ${squad}`,
  }[kind];
  const what = over.map((amount) => `${inNumbers(used[amount])} of ${tellAmount(amount, limit[amount] ?? 0)}`);
  return kind === "day" && squad === undefined
    ? `${whose} ${what.join(" and ")} were used`
    : `${whose} has used ${what.join(" and ")}`;
}

export function tellAmounts(amounts: Limit): string {
  const set = AMOUNTS.filter((amount) => (amounts[amount] ?? 0) > 0);
  return set.map((amount) => tellAmount(amount, amounts[amount] ?? 0)).join(", ");
}

function tellAmount(amount: Amount, value: number): string {
  return amount === "money"
    ? `${inNumbers(value)} in money`
    : `${inNumbers(value)} ${value === 1 ? amount.slice(0, -1) : amount}`;
}

const inNumbers = (value: number) => value.toLocaleString("en", { maximumFractionDigits: 6 });

const NOTHING: Amounts = { tokens: 0, calls: 0, money: 0 };

/** How much a decision raises a budget by: what its note says, or else the configured limit, as many times as needed. */
export function raiseOf({ base, limit, used, over }: Standing, note: string | null = null): Amounts {
  const said = amountsIn(note ?? "", over);
  if (said) return said;
  const times = Math.max(
    0,
    ...over.map((amount) => Math.floor((used[amount] - (limit[amount] ?? 0)) / (base[amount] ?? Number.POSITIVE_INFINITY)) + 1),
  );
  const raise = { ...NOTHING };
  for (const amount of AMOUNTS) raise[amount] = (base[amount] ?? 0) * times;
  return raise;
}

/** Amounts that a person wrote, such as "by 20k tokens" or "5"; a bare number applies to whatever is used up. */
function amountsIn(note: string, over: readonly Amount[]): Amounts | undefined {
  const bare = /^(?:raise )?(?:by )?\+? ?(\d[\d,_]{0,15}(?:\.\d{1,6})?) ?([km])?$/i.exec(note.trim());
  const named = [...note.matchAll(/(?<![\d,_.])(\d[\d,_]{0,15}(?:\.\d{1,6})?)\s{0,3}([km])?\s{0,3}(tokens?|calls?|money)\b/gi)];
  const raise = { ...NOTHING };
  if (bare) for (const amount of over) raise[amount] = numberOf(bare[1], bare[2]);
  for (const [, digits, unit, word = ""] of named) {
    const amount = AMOUNTS.find((each) => word.toLowerCase().startsWith(each.slice(0, 4)));
    if (amount) raise[amount] = amount === "money" ? numberOf(digits, unit) : Math.round(numberOf(digits, unit));
  }
  return bare || named.length > 0 ? raise : undefined;
}

function numberOf(digits = "0", unit = ""): number {
  return Number(digits.replaceAll(/[,_]/g, "")) * ({ k: 1_000, m: 1_000_000 }[unit.toLowerCase()] ?? 1);
}
