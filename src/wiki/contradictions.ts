import { createBreath } from "../lib/breath.ts";
import type { Contradiction } from "../protocol/page-review.ts";
import { areContradictory, type Fact, factsIn } from "./facts.ts";
import type { View } from "./indexer.ts";
import { searchPages } from "./search.ts";

/** Longer pages take too long to compare. */
const MAX_LENGTH = 200_000;
const MAX_FACTS = 60;
const MAX_CONTRADICTIONS = 20;
const PAGES_PER_SUBJECT = 20;
const TIME_LIMIT_MS = 2_000;
/** This many values for one subject on a page are a list, not contradictions. */
const LIST_LENGTH = 3;

/** Finds conflicting statements about the same subject, within a page or between pages. `before` is the page's previous text. */
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
  const until = performance.now() + TIME_LIMIT_MS;
  for (const fact of newestFirst(own, factsIn(path, before.slice(0, MAX_LENGTH)))) {
    const pages = new Set([path]);
    for (const subject of fact.subjects)
      for (const hit of (await searchPages(view, subject, { limit: PAGES_PER_SUBJECT })).items) pages.add(hit.path);
    for (const other of pages) {
      await breathe();
      const against = findConflict(fact, factsOf(other), other === path);
      if (against === undefined) continue;
      const item = { path, says: fact.says, otherPath: other, otherSays: against.says };
      // Two lines of one page are one contradiction, not one each way.
      const key = JSON.stringify([other, ...[fact.says, against.says].sort()]);
      if (!found.has(key)) found.set(key, item);
    }
    if (found.size >= MAX_CONTRADICTIONS || performance.now() > until) break;
  }
  return [...found.values()].slice(0, MAX_CONTRADICTIONS);
}

/** New facts first, so that the limit does not cut them. */
function newestFirst(facts: readonly Fact[], before: readonly Fact[]): Fact[] {
  const old = new Set(before.map(({ says }) => says));
  const isOld = ({ says }: Fact) => old.has(says);
  return [...facts.filter((fact) => !isOld(fact)), ...facts.filter(isOld)].slice(0, MAX_FACTS);
}

/** The fact that conflicts with the given one. A page that also states the same value does not conflict, nor does a list. */
function findConflict(fact: Fact, facts: readonly Fact[], isSamePage: boolean): Fact | undefined {
  const about = facts.filter(
    (other) =>
      other !== fact &&
      other.subjects.some((subject) => fact.subjects.includes(subject)) &&
      (!isSamePage || other.section === fact.section),
  );
  if (about.length === 0 || about.length >= LIST_LENGTH - (isSamePage ? 1 : 0)) return undefined;
  return about.every((other) => areContradictory(fact.value, other.value)) ? about[0] : undefined;
}
