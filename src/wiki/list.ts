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

/** The pages of a folder, by path. */
export function listPages(view: View, { under, after = "", limit = DEFAULT_LIMIT }: ListOptions = {}): PageList {
  const prefix = under === undefined ? "pages/" : `pages/${withoutEnd(under.replace(/^pages\/?/, ""), "/")}/`.replace("//", "/");
  const isWanted = (path: string) => path.startsWith(prefix) && path > after;
  const fresh = [...view.fresh].filter(isWanted).flatMap((path) => view.read(path) ?? []);
  const known = view.index.page(prefix, after, limit + 1 + view.fresh.size).filter(({ path }) => !view.fresh.has(path));
  const all = [...known, ...fresh].sort((a, b) => Buffer.compare(Buffer.from(a.path), Buffer.from(b.path)));
  const items = all.slice(0, limit).map(infoOf);
  const last = items.at(-1)?.path;
  return { items, total: countPages(view, prefix), ...(all.length > limit && last !== undefined ? { next: last } : {}) };
}

export function infoOf({ path, title, tags, bytes, mtime }: Omit<Entry, "excerpt">): PageInfo {
  return { path, title, tags, bytes, updatedAt: new Date(mtime).toISOString() };
}
