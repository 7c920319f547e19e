/** Removes trailing characters in linear time, which a regular expression would not. */
export function withoutEnd(text: string, letters: string | RegExp): string {
  const goes =
    typeof letters === "string" ? (letter: string) => letters.includes(letter) : (letter: string) => letters.test(letter);
  let end = text.length;
  while (end > 0 && goes(text[end - 1]!)) end -= 1;
  return text.slice(0, end);
}
