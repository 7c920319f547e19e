import { createBreath } from "../lib/breath.ts";
import type { Contradiction } from "../protocol/page-review.ts";
import { exclude, type Fact, factsIn } from "./facts.ts";
import type { View } from "./indexer.ts";
import { searchPages } from "./search.ts";

/** A longer page is no place for facts, and takes too long to compare. */
const MAX_LENGTH = 200_000;
const MOST_FACTS = 60;
const MOST_FOUND = 20;
const LOOKED_AT = 20;
const LONGEST_MS = 2_000;
/** So many values of one thing on a page are a list. */
const A_LIST = 3;

/** Where a page and the other pages, or two places of the page, say different things of the same. `before` is what it held last. */
export async function findContradictions(view: View, path: string, before = ""): Promise<Contradiction[]> {
  const text = view.text(path) ?? "";
  if (text.length > MAX_LENGTH) return [];
  const breathe = createBreath();
  const own = factsIn(path, text);
  const known = new Map<string, Fact[]>([[path, own]]);
  const factsOf = (other: string): Fact[] => {
    const facts = known.get(other) ?? factsIn(other, (view.text(other) ?? "").slice(0, MAX_LENGTH));
    known.set(other, facts);
    return facts;
  };
  const found = new Map<string, Contradiction>();
  const until = performance.now() + LONGEST_MS;
  for (const fact of newestFirst(own, factsIn(path, before.slice(0, MAX_LENGTH)))) {
    const pages = new Set([path]);
    for (const subject of fact.subjects)
      for (const hit of (await searchPages(view, subject, { limit: LOOKED_AT })).items) pages.add(hit.path);
    for (const other of pages) {
      await breathe();
      const against = otherWord(fact, factsOf(other), other === path);
      if (against === undefined) continue;
      const item = { path, says: fact.says, otherPath: other, otherSays: against.says };
      // Two lines of one page contradict each other once, not once each way.
      const key = JSON.stringify([other, ...[fact.says, against.says].sort()]);
      if (!found.has(key)) found.set(key, item);
    }
    if (found.size >= MOST_FOUND || performance.now() > until) break;
  }
  return [...found.values()].slice(0, MOST_FOUND);
}

/** What was not there before comes first, so that the limit does not leave it out. */
function newestFirst(facts: readonly Fact[], before: readonly Fact[]): Fact[] {
  const old = new Set(before.map(({ says }) => says));
  const isOld = ({ says }: Fact) => old.has(says);
  return [...facts.filter((fact) => !isOld(fact)), ...facts.filter(isOld)].slice(0, MOST_FACTS);
}

/** What the facts of a page say instead. A page that also says the same does not contradict, and neither does a list. */
function otherWord(fact: Fact, facts: readonly Fact[], isSamePage: boolean): Fact | undefined {
  const about = facts.filter(
    (other) =>
      other !== fact &&
      other.subjects.some((subject) => fact.subjects.includes(subject)) &&
      (!isSamePage || other.section === fact.section),
  );
  if (about.length === 0 || about.length >= A_LIST - (isSamePage ? 1 : 0)) return undefined;
  return about.every((other) => exclude(fact.value, other.value)) ? about[0] : undefined;
}
