import { posix } from "node:path";
import { createBreath } from "../lib/breath.ts";
import type { View } from "./indexer.ts";
import { listPages } from "./list.ts";

/** A page and the paths it links to, whether or not those pages exist. */
export interface PageLinks {
  path: string;
  title: string;
  links: string[];
}

/** A map of more pages would be unreadable. */
const MAX_PAGES = 5_000;
const MAX_LINKS = 200;
const TARGET = /\]\(<?([^)\s>]+)/g;

/** Reads the links of every page. */
export async function linksOfPages(view: View): Promise<PageLinks[]> {
  const breathe = createBreath();
  const { items } = await listPages(view, { limit: MAX_PAGES });
  const found: PageLinks[] = [];
  for (const { path, title } of items) {
    found.push({ path, title, links: linksIn(path, view.text(path) ?? "") });
    await breathe();
  }
  return found;
}

/** The pages that a page links to, each once, without itself. */
export function linksIn(path: string, text: string): string[] {
  const targets = new Set<string>();
  for (const [, target = ""] of text.matchAll(TARGET)) {
    const page = resolveLink(path, target);
    if (page !== undefined && page !== path) targets.add(page);
    if (targets.size >= MAX_LINKS) break;
  }
  return [...targets];
}

function resolveLink(from: string, target: string): string | undefined {
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
    // A stray percent sign is literal.
    return text;
  }
}
