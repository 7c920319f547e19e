/** A cautious estimate of how many tokens a text costs: about four characters each, three where the text is not Latin. */
export function estimateTokens(text: string): number {
  const plain = text.replace(/[^\x20-\x7e\n\t]/g, "").length;
  return Math.ceil(plain / 3.6 + (text.length - plain) / 1.5);
}

/** As much of the beginning of a text as fits, cut at a line where possible. */
export function clipToTokens(text: string, maxTokens: number): string {
  if (estimateTokens(text) <= maxTokens) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (estimateTokens(text.slice(0, middle)) <= maxTokens - 1) low = middle;
    else high = middle - 1;
  }
  const cut = text.slice(0, low);
  const line = cut.lastIndexOf("\n");
  return `${line > low / 2 ? cut.slice(0, line) : cut}…`;
}
