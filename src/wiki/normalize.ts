/**
 * Both sides of every comparison pass through here, so that an indexed search and a plain scan cannot differ. A Σ becomes
 * ς only at the end of a word, which a part of a word does not know of: all are σ here, and every letter stands for itself.
 */
export function normalize(text: string): string {
  return text.toLowerCase().replaceAll("ς", "σ");
}

/** The text around a place in the normalized text: 100 characters either side, cut ends marked. */
export function snippetAt(text: string, normalized: string, at: number, length: number, around = 100): string {
  const start = placeIn(text, normalized, at);
  const end = placeIn(text, normalized, at + length);
  const from = start > around ? start - around : 0;
  const to = Math.min(text.length, end + around);
  const cut = text
    .slice(from, to)
    .replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, "")
    .replace(/\s+/g, " ");
  return `${from > 0 ? "…" : ""}${cut}${to < text.length ? "…" : ""}`;
}

/** Where a place of the normalized text stands in the text: a few letters change their length when they are normalized. */
function placeIn(text: string, normalized: string, at: number): number {
  if (text.length === normalized.length) return at;
  let seen = 0;
  let place = 0;
  for (const letter of text) {
    if (seen >= at) break;
    seen += normalize(letter).length;
    place += letter.length;
  }
  return place;
}

/** The different words of a normalized query. */
export function wordsOf(normalized: string): string[] {
  return [...new Set(normalized.split(/[^\p{L}\p{M}\p{N}_]+/u).filter((word) => word !== ""))];
}
