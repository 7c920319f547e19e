/** The assumed page count of a trigram too rare to be counted. */
export const UNCOUNTED = 5;
/** Reading one page costs as much as scanning this many entries of a trigram's list. */
const READ_COST = 1_000;
/** The share of pages that one more trigram of the same phrase leaves: they tend to occur together. */
const STILL_LEFT = 0.3;

/** All trigrams of a normalized text, by code points, like the tokenizer. */
export function gramsOf(text: string): string[] {
  const letters = [...indexable(text)];
  const grams = new Set<string>();
  for (let at = 0; at + 3 <= letters.length; at += 1) grams.add(`${letters[at]}${letters[at + 1]}${letters[at + 2]}`);
  return [...grams];
}

/** Replaces NUL, at which the tokenizer stops, with another control character; index and query both do. */
export function indexable(text: string): string {
  return text.includes("\0") ? text.replaceAll("\0", "\u0001") : text;
}

/** Chooses a few trigrams, some from each group, that narrow down the pages fastest. */
export function mostSelective(
  groups: readonly (readonly string[])[],
  counts: ReadonlyMap<unknown, number>,
  most: number,
): string[] {
  const ordered = groups.map((grams) => {
    const counted = grams.map((gram) => ({ gram, pages: counts.get(gram) ?? UNCOUNTED }));
    return counted.sort((a, b) => a.pages - b.pages).slice(0, most);
  });
  const chosen = new Set<string>();
  let left = Number.POSITIVE_INFINITY;
  for (let round = 0; round < most; round += 1) {
    const next = ordered.flatMap((counted) => counted[round] ?? []).sort((a, b) => a.pages - b.pages);
    for (const { gram, pages } of next) {
      if (chosen.size >= most || left * READ_COST < pages) return [...chosen];
      left = Math.min(pages, left * STILL_LEFT);
      chosen.add(gram);
    }
  }
  return [...chosen];
}
