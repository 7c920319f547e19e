import type { Span, Style } from "../text/style.ts";

const ALLOWED = /^(?:https?:\/\/|mailto:)/i;

/** A link's words, and where it leads: behind them if the terminal can do that, and after them if it cannot or the words pretend otherwise. */
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

/** Only letters that cannot end the sequence that a link is made of. */
function encoded(target: string): string {
  return target.replace(/[^\x21-\x7e]/gu, (sign) => {
    try {
      return encodeURIComponent(sign);
    } catch {
      // Half of a letter is no part of an address.
      return "";
    }
  });
}
