/** Words that say nothing about what a piece of work is. */
const EMPTY = new Set(
  "a about add after all also an and any are as at be but by can change check could create do does for from get give had has have help how i if in into is it its let make me my need needs new no not now of off on one or our out please so some such than that the their them then there these they this to too up us use using want was we when where which while who will with work would you your".split(
    " ",
  ),
);

/** The whole words of a text in lower case; "userName", "user-name" and "user_name" are two words each. */
export function wordsOf(text: string): string[] {
  return (
    text
      .replace(/([\p{Ll}\d])(\p{Lu})/gu, "$1 $2")
      .toLowerCase()
      .match(/c\+\+|[cf]#|\.net|[\p{L}\p{N}]+/gu)
      ?.filter((word) => word.length > 1 || !/[a-z]/.test(word)) ?? []
  );
}

/** The words that carry meaning, each as its stem. */
export function stemsOf(text: string): string[] {
  return wordsOf(text)
    .filter((word) => !EMPTY.has(word))
    .map(stem);
}

/** Removes plural, -ing and -ed endings, so that "migrations", "migrate" and "migrating" match; short words stay as they are. */
export function stem(word: string): string {
  if (word.length <= 3 || word.length > 40 || !/^[a-z]+$/.test(word)) return word;
  const singular = word
    .replace(/ies$/, "y")
    .replace(/(ss|sh|ch|x|z)es$/, "$1")
    .replace(/([^su])s$/, "$1");
  if (singular.length <= 4) return singular;
  return singular
    .replace(/(?:ational|ation|ations)$/, "ate")
    .replace(/([a-z]{3,}?)(?:ings?|ed)$/, "$1")
    .replace(/([^aeiouls])\1$/, "$1")
    .replace(/([a-z]{3,})e$/, "$1");
}
