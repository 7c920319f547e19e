/** Counts what a request costs. */
export type Counter = (value: unknown) => number;

/** A deterministic estimate: four bytes of UTF-8 are a token. */
export const estimateTokens: Counter = (value) => {
  if (value === undefined) return 0;
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return Math.ceil(Buffer.byteLength(text) / 4);
};

/** The longest start of a text that costs no more than this. */
export function cutToTokens(text: string, tokens: number): string {
  let bytes = 0;
  let kept = "";
  for (const character of text) {
    bytes += Buffer.byteLength(character);
    if (bytes > tokens * 4) break;
    kept += character;
  }
  return kept;
}
