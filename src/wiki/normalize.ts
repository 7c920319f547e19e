/**
 * Both sides of every comparison pass through here, so that an indexed search and a plain scan agree. `toLowerCase` turns Σ
 * into ς only at the end of a word, which a fragment cannot know, so every ς becomes σ.
 */
export function normalize(text: string): string {
  return text.toLowerCase().replaceAll("ς", "σ");
}

/** The text around a match in the normalized text: 100 characters either side, with ellipses where it is cut. */
export function snippetAt(text: string, normalized: string, at: number, length: number, around = 100): string {
  const start = originalOffset(text, normalized, at);
  const end = originalOffset(text, normalized, at + length);
  const from = start > around ? start - around : 0;
  const to = Math.min(text.length, end + around);
  const cut = text
    .slice(from, to)
    .replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, "")
    .replace(/\s+/g, " ");
  return `${from > 0 ? "…" : ""}${cut}${to < text.length ? "…" : ""}`;
}

/** Maps an offset in the normalized text to the original: a few letters change length when normalized. */
function originalOffset(text: string, normalized: string, at: number): number {
  if (text.length === normalized.length) return at;
  let seen = 0;
  let offset = 0;
  for (const letter of text) {
    if (seen >= at) break;
    seen += normalize(letter).length;
    offset += letter.length;
  }
  return offset;
}

/** The distinct words of a normalized query. */
export function wordsOf(normalized: string): string[] {
  return [...new Set(normalized.split(/[^\p{L}\p{M}\p{N}_]+/u).filter((word) => word !== ""))];
}
