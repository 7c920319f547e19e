/** Counts the tokens of a value. */
export type Counter = (value: unknown) => number;

/** A deterministic estimate: four UTF-8 bytes per token. */
export const estimateTokens: Counter = (value) => {
  if (value === undefined) return 0;
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return Math.ceil(Buffer.byteLength(text) / 4);
};

/** The longest prefix of a text with at most this many tokens. */
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
