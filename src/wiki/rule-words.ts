const MAX_LENGTH = 300;

/** How a rule begins in English, German, French and Spanish. For other languages the model points at the sentence. */
const RULING = [
  /^(?:please,? |and |but |also,? )?(?:always|never|from now on,?) \S+ \S/i,
  /^(?:bitte,? |und |aber |auch )?(?:immer|nie|niemals|(?:ab jetzt|ab sofort|von nun an|in zukunft|künftig),?) \S+ \S/i,
  /^(?:bitte |und |aber )?(?!ich|du|er|sie|es|wir|ihr|man|das|die|der|noch|fast)\p{L}+e? (?:bitte )?(?:immer|nie|niemals) \S/iu,
  /^(?:s'il (?:te|vous) plaît,? |et |mais |aussi,? )?(?:toujours|jamais|(?:désormais|dorénavant|à partir de maintenant),?) \S+ \S/i,
  /^(?:et |mais )?(?:ne \p{L}+|n['’]\p{L}+|(?!je|tu|il|elle|on|nous|vous|ils|elles)\p{L}+) (?:jamais|toujours) \S/iu,
  /^(?:por favor,? |y |pero |también,? )?(?:siempre|nunca|jamás|(?:a partir de ahora|de ahora en adelante),?) \S+ \S/i,
  /^(?:y |pero )?(?!yo|tú|él|ella|lo|la|me|te|se|no)\p{L}+ (?:siempre|nunca) \S/iu,
];
const NO_RULING = /^(?:please,? )?never ?mind\b|\?$/i;

/** A person's own sentences, without code, quotations and other people's text. */
export function ownSentences(text: string): string[] {
  const own: string[] = [];
  let end: string | undefined;
  for (const line of text.split("\n")) {
    const trimmed = line.trim();
    if (end !== undefined) {
      if (trimmed === end) end = undefined;
      continue;
    }
    const mark = /^--- (?:begin|data) ([0-9a-f]+)$/.exec(trimmed)?.[1];
    if (mark !== undefined) end = `--- end ${mark}`;
    else if (trimmed.startsWith("```")) end = "```";
    else if (!/^[>("'`«„“]/.test(trimmed)) own.push(trimmed);
  }
  const sentences = own.flatMap((line) => line.replace(/^[-*] /, "").split(/(?<=[.!?]) /));
  return [...new Set(sentences.map((each) => each.trim()))].filter((each) => each !== "" && each.length <= MAX_LENGTH);
}

/** A person's sentences that begin like a rule. */
export const rulesIn = (text: string): string[] =>
  ownSentences(text).filter((each) => RULING.some((ruling) => ruling.test(each)) && !NO_RULING.test(each));

/** Finds a person's whole sentence by its words. Half a sentence could mean the opposite. */
export function sentenceNamed(words: string, text: string): string | undefined {
  const wanted = comparable(words);
  return ownSentences(text).find((each) => comparable(each) === wanted);
}

const comparable = (text: string): string =>
  text
    .normalize("NFKC")
    .toLowerCase()
    .replace(/[\s\p{P}]+/gu, " ")
    .trim();
