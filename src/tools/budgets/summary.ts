import { usageError } from "../../lib/errors.ts";
import type { Cost, UsageGroup, UsageItem, UsageSummary } from "../../protocol/usage.ts";
import type { UsageLog, UsagePart } from "../../store/usage.ts";
import { costOf, type Prices, totalOf } from "./money.ts";

export interface SummaryDeps {
  usage: Pick<UsageLog, "by">;
  prices: () => Prices;
  now?: () => Date;
}

/** The name for everything that belongs to no item of a group. */
export const NONE = "(none)";
/** The name for the smaller items of a group that has too many. */
export const OTHERS = "(others)";

const MAX_ITEMS = 500;
/** Groups with ever more items: unless more is asked for, only the last `ENDLESS_DAYS` are summed up. */
const ENDLESS: readonly UsageGroup[] = ["conversation", "task", "run"];
const ENDLESS_DAYS = 30;
const DAY_MS = 86_400_000;

/** Sums up what model calls used and cost, by a group. Every call is in one of the items, and the total is their sum. */
export function createSummaries({ usage, prices, now = () => new Date() }: SummaryDeps) {
  return (by: UsageGroup, given?: string): UsageSummary => {
    const since = sinceOf(given ?? (ENDLESS.includes(by) ? `${ENDLESS_DAYS}d` : "all"), now());
    const groups = new Map<string, UsagePart[]>();
    for (const part of usage.by(by, since ?? "")) {
      const key = JSON.stringify([part.name, part.squad]);
      const known = groups.get(key);
      if (known) known.push(part);
      else groups.set(key, [part]);
    }
    const items = [...groups.values()].map((parts): UsageItem => {
      const { name, squad } = parts[0]!;
      return { name: name || NONE, ...(squad && { squad }), ...costOf(parts, prices()) };
    });
    const shown = shortened(by === "day" ? items.sort((a, b) => (a.name < b.name ? -1 : 1)) : items.sort(bySize), by);
    return { by, since, total: totalOf(shown), items: shown };
  };
}
export type Summaries = ReturnType<typeof createSummaries>;

/** The first day that counts; null for all days. */
export function sinceOf(given: string, now: Date): string | null {
  if (given === "all") return null;
  const days = /^(\d{1,5})d$/.exec(given)?.[1];
  if (days !== undefined) return new Date(now.getTime() - Number(days) * DAY_MS).toISOString().slice(0, 10);
  const date = /^\d{4}-\d\d-\d\d(?:$|T)/.test(given) ? new Date(given) : new Date(Number.NaN);
  if (Number.isNaN(date.getTime()))
    throw usageError(`since: "${given.slice(0, 40)}" is no day. Write 7d, a date such as 2026-01-31, or all.`);
  return date.toISOString().slice(0, 10);
}

const tokensOf = ({ inputTokens, outputTokens }: Cost) => inputTokens + outputTokens;

function bySize(a: UsageItem, b: UsageItem): number {
  return b.money - a.money || tokensOf(b) - tokensOf(a) || b.calls - a.calls || (a.name < b.name ? -1 : 1);
}

function shortened(items: UsageItem[], by: UsageGroup): UsageItem[] {
  if (items.length <= MAX_ITEMS) return items;
  const isFirst = by === "day" ? (index: number) => index >= items.length - MAX_ITEMS : (index: number) => index < MAX_ITEMS;
  const rest = items.filter((_, index) => !isFirst(index));
  return [...items.filter((_, index) => isFirst(index)), { name: OTHERS, ...totalOf(rest) }];
}
