import type { Price } from "../../home/safety-config.ts";
import type { Cost } from "../../protocol/usage.ts";
import type { UsagePart } from "../../store/usage.ts";

export type Prices = Readonly<Record<string, Price>>;

/** Sums of money are exact to this fraction of a unit. */
const MILLIONTHS = 1_000_000;

/** Adds up what was used, and its cost if the model has a price. */
export function costOf(parts: readonly UsagePart[], prices: Prices): Cost {
  const sum = (amount: (part: UsagePart) => number) => parts.reduce((total, part) => total + amount(part), 0);
  const unpriced = [
    ...new Set(parts.filter(({ rehearsal, model }) => !rehearsal && !Object.hasOwn(prices, model)).map(({ model }) => model)),
  ];
  return {
    calls: sum(({ calls }) => calls),
    inputTokens: sum(({ inputTokens }) => inputTokens),
    outputTokens: sum(({ outputTokens }) => outputTokens),
    cacheReadTokens: sum(({ cacheReadTokens }) => cacheReadTokens),
    rehearsalCalls: sum(({ rehearsal, calls }) => (rehearsal ? calls : 0)),
    money: sum((part) => millionthsOf(part, prices)) / MILLIONTHS,
    partial: unpriced.length > 0,
    unpriced: unpriced.sort(),
  };
}

/** Adds up the lines of a summary, so that the total is exactly their sum. */
export function totalOf(lines: readonly Cost[]): Cost {
  const sum = (amount: (line: Cost) => number) => lines.reduce((total, line) => total + amount(line), 0);
  return {
    calls: sum(({ calls }) => calls),
    inputTokens: sum(({ inputTokens }) => inputTokens),
    outputTokens: sum(({ outputTokens }) => outputTokens),
    cacheReadTokens: sum(({ cacheReadTokens }) => cacheReadTokens),
    rehearsalCalls: sum(({ rehearsalCalls }) => rehearsalCalls),
    money: sum(({ money }) => Math.round(money * MILLIONTHS)) / MILLIONTHS,
    partial: lines.some(({ partial }) => partial),
    unpriced: [...new Set(lines.flatMap(({ unpriced }) => unpriced))].sort(),
  };
}

/** Prices are per million tokens, so a token costs its price in millionths. Tokens read from a cache are part of the input. */
function millionthsOf({ model, rehearsal, inputTokens, outputTokens, cacheReadTokens }: UsagePart, prices: Prices): number {
  const price = rehearsal || !Object.hasOwn(prices, model) ? undefined : prices[model];
  if (!price) return 0;
  const { input, output, cacheRead = input } = price;
  const cached = Math.min(cacheReadTokens, inputTokens);
  return Math.round((inputTokens - cached) * input + cached * cacheRead + outputTokens * output);
}
