import type { Span, Style } from "../text/style.ts";

const ALLOWED = /^(?:https?:\/\/|mailto:)/i;

/**
 * Styles a link. The target is attached to the words if the terminal supports links, and written after them if it does not or
 * if the words pretend to be another address.
 */
export function linkSpans(label: readonly Span[], target: string, { links, style }: { links: boolean; style: Style }): Span[] {
  const words = label.map(({ text }) => text).join("");
  if (!ALLOWED.test(target)) return words === "" ? [{ text: target, style }] : [...label];
  const link = encoded(target);
  const looks: Style = { underline: true, colour: "blue", link };
  const spans = label.map((span) => ({ text: span.text, style: { ...span.style, ...looks } }));
  const isPlain = words === target || words === target.replace(/^mailto:/, "");
  const pretends = !isPlain && /^\s*(?:https?:|www\.)/i.test(words);
  if (words === "") return [{ text: target, style: { ...style, ...looks } }];
  return isPlain || (links && !pretends) ? spans : [...spans, { text: ` (${target})`, style: { ...style, dim: true } }];
}

/** Encodes all characters that could end the terminal's link sequence. */
function encoded(target: string): string {
  return target.replace(/[^\x21-\x7e]/gu, (sign) => {
    try {
      return encodeURIComponent(sign);
    } catch {
      // Half of a surrogate pair cannot be part of an address.
      return "";
    }
  });
}
