/** Signs that a screen does not show, or that turn its writing round. */
const UNSEEN = /[^\P{Cc}\n\t]|[\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/gu;

/** A text in which nothing hides: signs that no screen shows are spelled out. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (sign) => {
    const code = sign.codePointAt(0)!;
    return code < 0x20 ? String.fromCodePoint(0x2400 + code) : `\\u{${code.toString(16)}}`;
  });
}

/** The same on one line, no longer than that. */
export function visibleLine(text: string, most: number): string {
  const line = visible(text).replace(/\s+/g, " ").trim();
  return line.length <= most ? line : `${line.slice(0, most - 1)}…`;
}
