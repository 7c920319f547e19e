/** How many tokens a text costs, rather too many than too few: one for each 3.6 ASCII characters, one for each other character. */
export function estimateTokens(text: string): number {
  let plain = 0;
  let other = 0;
  for (const letter of text) {
    if (letter.charCodeAt(0) < 128) plain += 1;
    else other += 1;
  }
  return Math.ceil(plain / 3.6 + other);
}

/** As much of the beginning of a text as fits, cut at a line where possible. */
export function clipToTokens(text: string, maxTokens: number): string {
  if (text.length <= maxTokens || estimateTokens(text) <= maxTokens) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (estimateTokens(text.slice(0, middle)) <= maxTokens - 1) low = middle;
    else high = middle - 1;
  }
  const cut = text.slice(0, low);
  const line = cut.lastIndexOf("\n");
  return `${line > low / 2 ? cut.slice(0, line) : cut}…`.toWellFormed();
}
