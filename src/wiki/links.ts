import { posix } from "node:path";
import { createBreath } from "../lib/breath.ts";
import type { View } from "./indexer.ts";
import { listPages } from "./list.ts";

/** A page with the pages it leads to, by their paths; a page that is led to need not be there. */
export interface PageLinks {
  path: string;
  title: string;
  links: string[];
}

/** A map of more pages than this shows nobody anything. */
const MOST_PAGES = 5_000;
const MOST_LINKS = 200;
const TARGET = /\]\(<?([^)\s>]+)/g;

/** Reads every page for the links in it. */
export async function linksOfPages(view: View): Promise<PageLinks[]> {
  const breathe = createBreath();
  const { items } = await listPages(view, { limit: MOST_PAGES });
  const found: PageLinks[] = [];
  for (const { path, title } of items) {
    found.push({ path, title, links: linksIn(path, view.text(path) ?? "") });
    await breathe();
  }
  return found;
}

/** The pages that a page's markdown leads to, each once, without the page itself. */
export function linksIn(path: string, text: string): string[] {
  const targets = new Set<string>();
  for (const [, target = ""] of text.matchAll(TARGET)) {
    const page = pageAt(path, target);
    if (page !== undefined && page !== path) targets.add(page);
    if (targets.size >= MOST_LINKS) break;
  }
  return [...targets];
}

function pageAt(from: string, target: string): string | undefined {
  const plain = target.split(/[?#]/, 1)[0] ?? "";
  if (plain === "" || /^[a-z][a-z0-9+.-]*:/i.test(plain) || plain.startsWith("//")) return undefined;
  const wanted = decoded(plain).replace(/^\/wiki\//, "/");
  const inside = posix.normalize(
    posix.join("/", wanted.startsWith("/") ? wanted : `${posix.dirname(from.slice("pages".length))}/${wanted}`),
  );
  const isSource = /^sources\//.test(posix.join(posix.dirname(from), decoded(plain)));
  if (isSource || inside === "/" || inside.endsWith("/")) return undefined;
  return `pages${inside}${inside.endsWith(".md") ? "" : ".md"}`;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    // A stray percent sign is meant as it stands.
    return text;
  }
}
