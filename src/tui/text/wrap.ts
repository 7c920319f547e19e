import { type Line, lineWidth, type Span, type Style } from "./style.ts";
import { graphemes, letterWidth } from "./width.ts";

export interface WrapOptions {
  /** Stands before the first line. */
  first?: Line;
  /** Stands before every other line. */
  rest?: Line;
}

/** A line after wrapping, and how far into the text it reaches, the space at the break included. */
export interface Wrapped {
  line: Line;
  end: number;
}

interface Letter {
  text: string;
  width: number;
  style: Style | undefined;
}

/** Breaks a text at spaces so that it fits; a word that is wider than the screen is cut. Line breaks in it hold. */
export function wrap(spans: Line, width: number, { first = [], rest = first }: WrapOptions = {}): Wrapped[] {
  const letters = spans.flatMap(lettersOf);
  const lines: Wrapped[] = [];
  let from = 0;
  let reached = 0;
  while (from < letters.length) {
    const prefix = lines.length === 0 ? first : rest;
    const room = Math.max(2, width - lineWidth(prefix));
    const { end, next } = breakAt(letters, from, room);
    for (let index = from; index < next; index += 1) reached += letters[index]!.text.length;
    lines.push({ line: [...prefix, ...join(letters.slice(from, end))], end: reached });
    from = next;
  }
  return lines.length > 0 ? lines : [{ line: first, end: 0 }];
}

/** The same where only the lines are wanted. */
export function wrapped(spans: Line, width: number, options?: WrapOptions): Line[] {
  return wrap(spans, width, options).map(({ line }) => line);
}

/** As much of a line as fits, with a sign that there was more. */
export function clip(line: Line, width: number): Line {
  if (lineWidth(line) <= width) return line;
  const kept: Letter[] = [];
  let used = 1;
  for (const letter of line.flatMap(lettersOf)) {
    if (used + letter.width > width) break;
    used += letter.width;
    kept.push(letter);
  }
  return [...join(kept), { text: "…" }];
}

/** A line cut into pieces that fit, wherever that is. */
export function chop(line: Line, width: number): Line[] {
  const pieces: Letter[][] = [[]];
  let used = 0;
  for (const letter of line.flatMap(lettersOf)) {
    if (used + letter.width > width) {
      pieces.push([]);
      used = 0;
    }
    used += letter.width;
    pieces.at(-1)!.push(letter);
  }
  return pieces.map(join);
}

function breakAt(letters: readonly Letter[], from: number, room: number): { end: number; next: number } {
  let used = 0;
  let space = -1;
  for (let index = from; index < letters.length; index += 1) {
    const { text, width } = letters[index]!;
    if (text === "\n") return { end: index, next: index + 1 };
    if (text === " ") space = index;
    if (used + width > room) {
      if (space > from) return { end: space, next: space + 1 };
      return text === " " ? { end: index, next: index + 1 } : { end: Math.max(index, from + 1), next: Math.max(index, from + 1) };
    }
    used += width;
  }
  return { end: letters.length, next: letters.length };
}

function lettersOf({ text, style }: Span): Letter[] {
  return graphemes(text).map((each) => {
    const shown = each === "\t" ? "    " : each;
    return { text: shown, width: each === "\t" ? 4 : letterWidth(each), style };
  });
}

function join(letters: readonly Letter[]): Span[] {
  const spans: { text: string; style: Style | undefined }[] = [];
  for (const { text, style } of letters) {
    const last = spans.at(-1);
    if (last && last.style === style) last.text += text;
    else spans.push({ text, style });
  }
  return spans.map(({ text, style }) => ({ text, ...(style && { style }) }));
}
