import { daysBetween } from "./format.ts";

/** A line of a grouped list: a group's heading or an item. */
export type Grouped<T> = { head: string; many: number; item?: undefined } | { head?: undefined; many?: undefined; item: T };

interface Dated {
  status: string;
  createdAt: string;
}

const OPEN = new Set(["queued", "running"]);
const AT_WORK = "At work";

/** Active items first, then the finished ones by how long ago they were made, in the given order: few groups, so few headings. */
export function byAge<T extends Dated>(items: readonly T[], now = new Date()): Grouped<T>[] {
  const groups = new Map<string, T[]>([[AT_WORK, []]]);
  for (const item of items) {
    const name = OPEN.has(item.status) ? AT_WORK : ageOf(new Date(item.createdAt), now);
    const mine = groups.get(name) ?? [];
    mine.push(item);
    groups.set(name, mine);
  }
  return [...groups].flatMap(([head, mine]): Grouped<T>[] =>
    mine.length === 0 ? [] : [{ head, many: mine.length }, ...mine.map((item) => ({ item }))],
  );
}

function ageOf(time: Date, now: Date): string {
  const days = daysBetween(time, now);
  if (days <= 0) return "Today";
  if (days === 1) return "Yesterday";
  if (days < 7) return "Last 7 days";
  if (days < 30) return "Last 30 days";
  const [, month, , year] = time.toDateString().split(" ");
  return `${month} ${year}`;
}
