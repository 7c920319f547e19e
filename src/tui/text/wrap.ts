import { type Line, lineWidth, type Span, type Style } from "./style.ts";
import { eachGrapheme, graphemes, letterWidth } from "./width.ts";

export interface WrapOptions {
  /** The prefix of the first line. */
  first?: Line;
  /** The prefix of every other line. */
  rest?: Line;
}

/** A wrapped line, and the position in the text that it reaches, including the space at the break. */
export interface Wrapped {
  line: Line;
  end: number;
}

interface Letter {
  text: string;
  width: number;
  style: Style | undefined;
}

/** Wraps a text at spaces. A word wider than the screen is split, and existing line breaks are kept. */
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

/** Like `wrap`, but returns only the lines. */
export function wrapped(spans: Line, width: number, options?: WrapOptions): Line[] {
  return wrap(spans, width, options).map(({ line }) => line);
}

/** Cuts a line to the width and marks the cut with an ellipsis. Does not process the text beyond the width. */
export function clip(line: Line, width: number): Line {
  const kept: Letter[] = [];
  let used = 0;
  let fitting = 0;
  for (const { text, style } of line)
    for (const each of eachGrapheme(text)) {
      const letter = toLetter(each, style);
      used += letter.width;
      if (used > width) return [...join(kept.slice(0, fitting)), { text: "…" }];
      kept.push(letter);
      if (used < width) fitting = kept.length;
    }
  return line;
}

/** Cuts a line into pieces that fit, at any character. */
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
  return graphemes(text).map((each) => toLetter(each, style));
}

function toLetter(text: string, style: Style | undefined): Letter {
  return text === "\t" ? { text: "    ", width: 4, style } : { text, width: letterWidth(text), style };
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
