/** What a letter costs: one token for each 3.6 ASCII characters, one for each other character. */
const PLAIN = 1 / 3.6;

/** How many tokens a text costs, rather too many than too few. */
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

/** As much of the beginning of a text as fits, cut at a line where possible. */
export function clipToTokens(text: string, maxTokens: number): string {
  if (text.length <= maxTokens) return text;
  const { end, isWhole } = fitting(text, maxTokens);
  if (isWhole) return text;
  const cut = text.slice(0, end);
  const line = cut.lastIndexOf("\n");
  return `${line > end / 2 ? cut.slice(0, line) : cut}…`.toWellFormed();
}

/** Where a text has to end to fit with a mark behind it, and whether it fits whole. Looks no further than it has to. */
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
