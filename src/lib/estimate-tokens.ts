/** The estimate: one token per 3.6 ASCII characters, one per other character. */
const PLAIN = 1 / 3.6;

/** Estimates the tokens of a text, rather too many than too few. */
export function estimateTokens(text: string): number {
  let plain = 0;
  let other = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 128) plain += 1;
    else if (!isSecondHalf(code)) other += 1;
  }
  return Math.ceil(plain / 3.6 + other);
}

/** The longest beginning of a text that fits, cut at a line end where possible. */
export function clipToTokens(text: string, maxTokens: number): string {
  if (text.length <= maxTokens) return text;
  const { end, isWhole } = fitting(text, maxTokens);
  if (isWhole) return text;
  const cut = text.slice(0, end);
  const line = cut.lastIndexOf("\n");
  return `${line > end / 2 ? cut.slice(0, line) : cut}…`.toWellFormed();
}

/** The longest end of a text that fits, starting at a line where possible. */
export function lastOfTokens(text: string, maxTokens: number): string {
  if (estimateTokens(text) <= maxTokens) return text;
  let cost = 0;
  let from = text.length;
  for (; from > 0; from -= 1) {
    const code = text.charCodeAt(from - 1);
    if (code < 128) cost += PLAIN;
    else if (!isSecondHalf(code)) cost += 1;
    if (Math.ceil(cost - 1e-6) > maxTokens - 1) break;
  }
  const cut = text.slice(from);
  const line = cut.indexOf("\n");
  return `…${line >= 0 && line < cut.length / 2 ? cut.slice(line) : cut}`.toWellFormed();
}

/** Splits a text into pieces that each fit. */
export function splitToTokens(text: string, maxTokens: number): string[] {
  const pieces: string[] = [];
  for (let rest = text; ; ) {
    const { end, isWhole } = fitting(rest, maxTokens);
    if (isWhole || end === 0) return [...pieces, rest];
    pieces.push(rest.slice(0, end).toWellFormed());
    rest = rest.slice(end);
  }
}

/** Where to cut a text so that it fits together with a mark, and whether it fits whole. Reads no further than needed. */
function fitting(text: string, maxTokens: number): { end: number; isWhole: boolean } {
  let cost = 0;
  let end = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 128) cost += PLAIN;
    else if (!isSecondHalf(code)) cost += 1;
    if (Math.ceil(cost - 1e-6) <= maxTokens - 1) end = at + 1;
    if (Math.ceil(cost - 1e-6) > maxTokens) return { end, isWhole: false };
  }
  return { end, isWhole: true };
}

function isSecondHalf(code: number): boolean {
  return code >= 0xdc00 && code <= 0xdfff;
}
