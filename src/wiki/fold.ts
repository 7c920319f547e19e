/** Both sides of every comparison pass through here, so that an indexed search and a plain scan cannot differ. */
export function fold(text: string): string {
  return text.toLowerCase();
}

/** The text around a place in the folded text: 100 characters either side, cut ends marked. */
export function snippetAt(text: string, folded: string, at: number, length: number, around = 100): string {
  const start = unfolded(text, folded, at);
  const end = unfolded(text, folded, at + length);
  const from = start > around ? start - around : 0;
  const to = Math.min(text.length, end + around);
  const cut = text
    .slice(from, to)
    .replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, "")
    .replace(/\s+/g, " ");
  return `${from > 0 ? "…" : ""}${cut}${to < text.length ? "…" : ""}`;
}

/** Where a place of the folded text stands in the text: a few letters change their length when folded. */
function unfolded(text: string, folded: string, at: number): number {
  if (text.length === folded.length) return at;
  let seen = 0;
  let place = 0;
  for (const letter of text) {
    if (seen >= at) break;
    seen += fold(letter).length;
    place += letter.length;
  }
  return place;
}

/** The different words of a folded query. */
export function wordsOf(folded: string): string[] {
  return [...new Set(folded.split(/[^\p{L}\p{M}\p{N}_]+/u).filter((word) => word !== ""))];
}

/** Where the first of the words stands if the text holds every one at the beginning of a word, else -1. */
export function allWordsAt(folded: string, words: readonly string[]): number {
  let first = -1;
  for (const word of words) {
    const at = wordAt(folded, word);
    if (at < 0) return -1;
    if (first < 0) first = at;
  }
  return first;
}

const LETTER_BEFORE = /[\p{L}\p{M}\p{N}_]$/u;
const UNPARTED = /^[\p{scx=Han}\p{scx=Hira}\p{scx=Kana}\p{scx=Thai}]/u;

function wordAt(folded: string, word: string): number {
  // Scripts that put no space between words have no beginnings to look for.
  if (UNPARTED.test(word)) return folded.indexOf(word);
  for (let at = folded.indexOf(word); at >= 0; at = folded.indexOf(word, at + 1)) {
    if (at === 0 || !LETTER_BEFORE.test(folded.slice(Math.max(0, at - 2), at))) return at;
  }
  return -1;
}
