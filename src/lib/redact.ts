/** Removes secrets from texts: known ones, and what looks like one. */
export interface Redactor {
  /** Remembers a secret. Short values are ignored: they would match ordinary words. */
  hide(secret: string | undefined): void;
  clean(text: string): string;
  /**
   * For approval questions, where everything else must stay visible: shows each secret's length, and hides nothing else.
   * A key of several lines is hidden line by line.
   */
  mark(text: string): string;
}

const TOKENS = [
  /\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})/g,
  /\bsk-[A-Za-z0-9_-]{20,}/g,
  /\b\d{6,12}:[A-Za-z0-9_-]{30,}\b/g,
  /\bAKIA[0-9A-Z]{16}\b/g,
  /\bxox[abprs]-[A-Za-z0-9-]{10,}/g,
  // The seed of an nkey.
  /\bS[ACNOU][A-Z2-7]{56}\b/g,
];
const KEY = /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g;
const KEY_LINE = /[A-Za-z0-9+/=]{32,}/g;
const KEY_END = /(characters\](?:\n|\\n))([A-Za-z0-9+/=]{1,31})(?=(?:\n|\\n)-----END )/g;
/** Whether a text is too random to be a word. */
const isMixed = (text: string) => /\d/.test(text) && /[A-Z]/.test(text) && /[a-z]/.test(text);
/** A credential after a header's name; elsewhere only if it cannot be an ordinary word: with a digit or mixed case. */
const HEADER = /(authorization["']?\s*[:=]\s*["']?(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{12,}/gi;
const BEARER = /(\b(?:[Bb]earer|BEARER|[Bb]asic|BASIC)\s+)(?=[\w.~+/=-]*(?:\d|[a-z][A-Z]))[A-Za-z0-9._~+/=-]{12,}/g;

const counted = (secret: string) => `[secret, ${secret.length} characters]`;

export function createRedactor(secrets: Iterable<string | undefined> = []): Redactor {
  const known = new Set<string>();
  const hide = (secret: string | undefined) => {
    if (secret && secret.length >= 8) known.add(secret);
  };
  for (const secret of secrets) hide(secret);
  return {
    hide,
    clean(text) {
      let cleaned = text;
      for (const secret of known) if (cleaned.includes(secret)) cleaned = cleaned.replaceAll(secret, "[secret]");
      for (const pattern of [...TOKENS, KEY]) cleaned = cleaned.replace(pattern, "[secret]");
      return cleaned.replace(HEADER, "$1[secret]").replace(BEARER, "$1[secret]");
    },
    mark(text) {
      let marked = text;
      for (const secret of known) if (marked.includes(secret)) marked = marked.replaceAll(secret, () => counted(secret));
      for (const pattern of TOKENS) marked = marked.replace(pattern, counted);
      for (const pattern of [HEADER, BEARER])
        marked = marked.replace(pattern, (found, before: string) => before + counted(found.slice(before.length)));
      if (!marked.includes("PRIVATE KEY-----")) return marked;
      return marked
        .replace(KEY_LINE, (line) => (isMixed(line) ? counted(line) : line))
        .replace(KEY_END, (_, before: string, line: string) => before + counted(line));
    },
  };
}
