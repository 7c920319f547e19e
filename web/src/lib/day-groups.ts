/** A line of a grouped list: a group's heading or an item. */
export type Grouped<T> = { head: string; many: number; item?: undefined } | { head?: undefined; many?: undefined; item: T };

interface Dated {
  status: string;
  createdAt: string;
}

const OPEN = new Set(["queued", "running"]);
const AT_WORK = "At work";

/** Active items first, then the finished ones grouped by day, in the given order. */
export function byDay<T extends Dated>(items: readonly T[], now = new Date()): Grouped<T>[] {
  const groups = new Map<string, T[]>([[AT_WORK, []]]);
  for (const item of items) {
    const name = OPEN.has(item.status) ? AT_WORK : dayOf(new Date(item.createdAt), now);
    const mine = groups.get(name) ?? [];
    mine.push(item);
    groups.set(name, mine);
  }
  return [...groups].flatMap(([head, mine]): Grouped<T>[] =>
    mine.length === 0 ? [] : [{ head, many: mine.length }, ...mine.map((item) => ({ item }))],
  );
}

function dayOf(time: Date, now: Date): string {
  const yesterday = new Date(now);
  yesterday.setDate(now.getDate() - 1);
  if (time.toDateString() === now.toDateString()) return "Today";
  if (time.toDateString() === yesterday.toDateString()) return "Yesterday";
  const [, month, day, year] = time.toDateString().split(" ");
  return year === String(now.getFullYear()) ? `${month} ${Number(day)}` : `${month} ${Number(day)}, ${year}`;
}
