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
  /** The number of all pages, listed or not. */
  total: number;
  /** The cursor for `after`; absent on the last page of results. */
  next?: string;
}

export interface ListOptions {
  /** A folder below `pages/`, such as "projects". */
  under?: string;
  after?: string;
  limit?: number;
}

const DEFAULT_LIMIT = 1_000;
const SURROGATE = /[\ud800-\udfff]/;

/** The pages of a folder, by path. */
export async function listPages(view: View, { under, after = "", limit = DEFAULT_LIMIT }: ListOptions = {}): Promise<PageList> {
  const breathe = createBreath();
  const prefix = under === undefined ? "pages/" : `pages/${withoutEnd(under.replace(/^pages\/?/, ""), "/")}/`.replace("//", "/");
  const isWanted = (path: string) => path.startsWith(prefix) && path > after;
  const fresh: Entry[] = [];
  const wanted = [...view.fresh].filter(isWanted);
  for (const path of wanted.sort(orderOf(wanted))) {
    // Later paths cannot make it into the list.
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

/** Byte order, as in the index. UTF-16 order differs only for surrogates. */
function orderOf(paths: readonly string[]): (a: string, b: string) => number {
  if (paths.some((path) => SURROGATE.test(path))) return (a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b));
  return (a, b) => (a < b ? -1 : a > b ? 1 : 0);
}

export function infoOf({ path, title, tags, bytes, mtime }: Omit<Entry, "excerpt">): PageInfo {
  return { path, title, tags, bytes, updatedAt: new Date(mtime).toISOString() };
}
