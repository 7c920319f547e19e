/** `*` matches anything, `\*` a star; everything else matches itself. */
const STAR = /\\\*|\*/g;
/** Represents the `*` of another pattern when two patterns are compared; no matched text contains it. */
const ANYTHING = "\0";

/** Whether the whole text matches, in linear time. */
export function fits(pattern: string, text: string): boolean {
  const parts = partsOf(pattern);
  const first = parts[0]!;
  const last = parts.at(-1)!;
  if (parts.length === 1) return text === first;
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last)) return false;
  const end = text.length - last.length;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = indexOf(text, part, at, end);
    if (found < 0) return false;
    at = found + part.length;
  }
  return true;
}

/** Whether every text that matches one pattern also matches the other. */
export function covers(wide: string, narrow: string): boolean {
  return fits(wide, partsOf(narrow).join(ANYTHING));
}

/** A pattern that matches exactly this text. */
export function exactly(text: string): string {
  return text.replaceAll("*", "\\*");
}

/** Whether a pattern matches exactly one text. */
export function isExact(pattern: string): boolean {
  return partsOf(pattern).length === 1;
}

function partsOf(pattern: string): string[] {
  const parts: string[] = [];
  let part = "";
  let at = 0;
  for (const { 0: sign, index } of pattern.matchAll(STAR)) {
    part += pattern.slice(at, index);
    at = index + sign.length;
    if (sign === "*") {
      parts.push(part);
      part = "";
    } else part += "*";
  }
  return [...parts, part + pattern.slice(at)];
}

/** Finds a part by Knuth-Morris-Pratt, so that a hostile text costs no more than any other. */
function indexOf(text: string, part: string, from: number, end: number): number {
  if (part === "") return from <= end ? from : -1;
  const borders = bordersOf(part);
  const wanted = codesOf(part);
  let matched = 0;
  for (let at = from; at < end; at += 1) {
    const sign = text.charCodeAt(at);
    while (matched > 0 && sign !== wanted[matched]) matched = borders[matched - 1]!;
    if (sign === wanted[matched]) matched += 1;
    if (matched === part.length) return at - part.length + 1;
  }
  return -1;
}

/** The failure function: for each prefix, the length of its longest proper prefix that is also a suffix. */
function bordersOf(part: string): Uint32Array {
  const borders = new Uint32Array(part.length);
  let matched = 0;
  for (let at = 1; at < part.length; at += 1) {
    while (matched > 0 && part[at] !== part[matched]) matched = borders[matched - 1]!;
    if (part[at] === part[matched]) matched += 1;
    borders[at] = matched;
  }
  return borders;
}

function codesOf(text: string): Uint32Array {
  const codes = new Uint32Array(text.length);
  for (let at = 0; at < text.length; at += 1) codes[at] = text.charCodeAt(at);
  return codes;
}
