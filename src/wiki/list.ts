import { createBreath } from "../lib/breath.ts";
import { withoutEnd } from "../lib/trim.ts";
import type { View } from "./indexer.ts";
import type { Entry } from "./page-index.ts";
import { countPages } from "./summary.ts";

export interface PageInfo {
  path: string;
  title: string;
  tags: string[];
  bytes: number;
  updatedAt: string;
}

export interface PageList {
  items: PageInfo[];
  /** How many pages there are, listed or not. */
  total: number;
  /** Give it as `after` for the pages that follow; absent at the end. */
  next?: string;
}

export interface ListOptions {
  /** A folder below `pages/`, such as "projects". */
  under?: string;
  after?: string;
  limit?: number;
}

const DEFAULT_LIMIT = 1_000;
const HALVES = /[\ud800-\udfff]/;

/** The pages of a folder, by path. */
export async function listPages(view: View, { under, after = "", limit = DEFAULT_LIMIT }: ListOptions = {}): Promise<PageList> {
  const breathe = createBreath();
  const prefix = under === undefined ? "pages/" : `pages/${withoutEnd(under.replace(/^pages\/?/, ""), "/")}/`.replace("//", "/");
  const isWanted = (path: string) => path.startsWith(prefix) && path > after;
  const fresh: Entry[] = [];
  const wanted = [...view.fresh].filter(isWanted);
  for (const path of wanted.sort(orderOf(wanted))) {
    // No more of them can be listed than come first.
    if (fresh.length > limit) break;
    const page = view.read(path);
    if (page) fresh.push(page);
    await breathe();
  }
  const known = view.index.page(prefix, after, limit + 1 + view.fresh.size).filter(({ path }) => !view.fresh.has(path));
  const all = [...known, ...fresh];
  const order = orderOf(all.map(({ path }) => path));
  all.sort((a, b) => order(a.path, b.path));
  const items = all.slice(0, limit).map(infoOf);
  const last = items.at(-1)?.path;
  return { items, total: await countPages(view, prefix), ...(all.length > limit && last !== undefined ? { next: last } : {}) };
}

/** The order of the index: by bytes. Only halves of letters order otherwise by themselves. */
function orderOf(paths: readonly string[]): (a: string, b: string) => number {
  if (paths.some((path) => HALVES.test(path))) return (a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b));
  return (a, b) => (a < b ? -1 : a > b ? 1 : 0);
}

export function infoOf({ path, title, tags, bytes, mtime }: Omit<Entry, "excerpt">): PageInfo {
  return { path, title, tags, bytes, updatedAt: new Date(mtime).toISOString() };
}
