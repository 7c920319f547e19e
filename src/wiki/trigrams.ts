/** The assumed number of pages for a trigram too rare to be counted. */
export const UNCOUNTED = 5;
/** Reading one page costs as much as passing this many entries of a trigram's list. */
const READ_COST = 1_000;
/** The share of pages still left after one more trigram of the same phrase: trigrams of a phrase occur together. */
const STILL_LEFT = 0.3;

/** All trigrams of a normalized text, as the tokenizer cuts them: by code points. */
export function gramsOf(text: string): string[] {
  const letters = [...indexable(text)];
  const grams = new Set<string>();
  for (let at = 0; at + 3 <= letters.length; at += 1) grams.add(`${letters[at]}${letters[at + 1]}${letters[at + 2]}`);
  return [...grams];
}

/** The tokenizer stops at NUL; another control character stands in for it, on both sides. */
export function indexable(text: string): string {
  return text.includes("\0") ? text.replaceAll("\0", "\u0001") : text;
}

/** Chooses the few trigrams, some from each group, that narrow the pages down fastest. */
export function mostTelling(
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
