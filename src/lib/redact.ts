/** Takes secrets out of a text: the ones it was told of, and what looks like one. */
export interface Redactor {
  /** Remembers a secret for as long as this redactor lives. Short values are not secrets, they are words. */
  hide(secret: string | undefined): void;
  clean(text: string): string;
}

const LOOKS_SECRET = [
  /\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})/g,
  /\bsk-[A-Za-z0-9_-]{20,}/g,
  /\b\d{6,12}:[A-Za-z0-9_-]{30,}\b/g,
  /\bAKIA[0-9A-Z]{16}\b/g,
  /\bxox[abprs]-[A-Za-z0-9-]{10,}/g,
  // The seed of an nkey.
  /\bS[ACNOU][A-Z2-7]{56}\b/g,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g,
];
/** A credential where a header names it; and elsewhere if it is no word of a sentence: with a digit, or capitals among small letters. */
const HEADER = /(authorization["']?\s*[:=]\s*["']?(?:bearer|basic)\s+)[A-Za-z0-9._~+/=-]{12,}/gi;
const BEARER = /(\b(?:[Bb]earer|BEARER|[Bb]asic|BASIC)\s+)(?=[\w.~+/=-]*(?:\d|[a-z][A-Z]))[A-Za-z0-9._~+/=-]{12,}/g;

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
      for (const pattern of LOOKS_SECRET) cleaned = cleaned.replace(pattern, "[secret]");
      return cleaned.replace(HEADER, "$1[secret]").replace(BEARER, "$1[secret]");
    },
  };
}
