/** `*` stands for anything, `\*` for a star; everything else for itself. */
const STAR = /\\\*|\*/g;
/** Stands for what a `*` of another pattern stands for: no text that is matched holds it. */
const ANYTHING = "\0";

/** Whether the whole text fits, in a time that grows with the two lengths alone. */
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

/** Whether everything that fits one pattern fits the other. */
export function covers(wide: string, narrow: string): boolean {
  return fits(wide, partsOf(narrow).join(ANYTHING));
}

/** A pattern that only this text fits. */
export function exactly(text: string): string {
  return text.replaceAll("*", "\\*");
}

/** Whether only one text fits it. */
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

/** Where a part first stands between two places, by the method of Knuth, Morris and Pratt: a hostile text costs no more than any other. */
function indexOf(text: string, part: string, from: number, end: number): number {
  if (part === "") return from <= end ? from : -1;
  const borders = bordersOf(part);
  let matched = 0;
  for (let at = from; at < end; at += 1) {
    while (matched > 0 && text[at] !== part[matched]) matched = borders[matched - 1]!;
    if (text[at] === part[matched]) matched += 1;
    if (matched === part.length) return at - part.length + 1;
  }
  return -1;
}

/** For each beginning of a text, how long its longest beginning is that is also its end. */
function bordersOf(part: string): number[] {
  const borders = [0];
  let matched = 0;
  for (let at = 1; at < part.length; at += 1) {
    while (matched > 0 && part[at] !== part[matched]) matched = borders[matched - 1]!;
    if (part[at] === part[matched]) matched += 1;
    borders.push(matched);
  }
  return borders;
}
