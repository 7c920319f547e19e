import { shortPath } from "./paths.ts";

/** A page and the pages that it links to. */
export interface Linked {
  path: string;
  title: string;
  links: string[];
}

/** The other pages that link to a page, sorted by title. */
export function linkedFrom(pages: readonly Linked[], path: string): Linked[] {
  const here = shortPath(path);
  return pages
    .filter((page) => shortPath(page.path) !== here && page.links.some((link) => shortPath(link) === here))
    .sort((a, b) => (a.title < b.title ? -1 : 1));
}
