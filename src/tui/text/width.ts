const SEGMENTS = new Intl.Segmenter(undefined, { granularity: "grapheme" });
/** Matches text whose characters are one column wide and never join with their neighbours. */
const PLAIN = /^[\x20-\x7e]*$/;
const PLAIN_LINES = /^[\x20-\x7e\n]*$/;
const NO_WIDTH = /^[\p{Mn}\p{Me}\p{Cf}\p{Cc}]+$/u;
const EMOJI = /^\p{Emoji_Presentation}|\ufe0f|^\p{Regional_Indicator}{2}/u;
/** East Asian wide and full-width characters, apart from emoji. */
const WIDE =
  /^[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\u4dbf\u4e00-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{16fe0}-\u{18d08}\u{1aff0}-\u{1b2fb}\u{1f200}-\u{1f265}\u{20000}-\u{3fffd}]/u;

/** Segmenting takes time that grows with the square of a text's length, so it is done in pieces of this length. */
const PIECE = 256;
const HIGH_SURROGATE = /[\ud800-\udbff]/;

/**
 * Splits a text into characters as people count them: an emoji of several code points is one, and a combining mark belongs to
 * its letter.
 */
export function graphemes(text: string): string[] {
  return PLAIN_LINES.test(text) ? text.split("") : [...eachGrapheme(text)];
}

/** The same one at a time, for callers that need only the first ones. */
export function* eachGrapheme(text: string): Generator<string> {
  if (PLAIN.test(text)) return yield* text;
  for (let at = 0; at < text.length; ) {
    const cut = at + PIECE;
    const isHalved = HIGH_SURROGATE.test(text[cut - 1] ?? "");
    const found = Array.from(SEGMENTS.segment(text.slice(at, isHalved ? cut - 1 : cut)), ({ segment }) => segment);
    // The last one may go on in the next piece.
    if (cut < text.length && found.length > 1) found.pop();
    yield* found;
    for (const each of found) at += each.length;
  }
}

/** The width of a text in terminal columns. */
export function widthOf(text: string): number {
  if (PLAIN.test(text)) return text.length;
  return graphemes(text).reduce((sum, letter) => sum + letterWidth(letter), 0);
}

/** The width of one grapheme. */
export function letterWidth(letter: string): number {
  const code = letter.charCodeAt(0);
  if (letter.length === 1 && code < 0x300) return code < 0x20 || (code >= 0x7f && code < 0xa0) || code === 0xad ? 0 : 1;
  if (EMOJI.test(letter) || WIDE.test(letter)) return 2;
  return NO_WIDTH.test(letter) ? 0 : 1;
}
