import { graphemes, widthOf } from "../text/width.ts";

/** How many characters before the caret are searched for the start of a word. */
export const MOST_WORD = 1_000;

/** The text being typed and the caret's position in it. Immutable: every edit returns a new draft. */
export interface Draft {
  readonly text: string;
  readonly caret: number;
  /** The text cut last, which can be put back. */
  readonly cut: string;
}

export const emptyDraft: Draft = { text: "", caret: 0, cut: "" };

export type Edit =
  | "left"
  | "right"
  | "wordLeft"
  | "wordRight"
  | "lineStart"
  | "lineEnd"
  | "up"
  | "down"
  | "backspace"
  | "delete"
  | "cutWord"
  | "cutWordAfter"
  | "cutToStart"
  | "cutToEnd"
  | "putBack"
  | "swap";

/** Cleans typed text: no control characters except line breaks and tabs. */
export function typed(text: string): string {
  return text.replace(/\r\n?/g, "\n").replace(/[^\P{Cc}\n\t]/gu, "");
}

export function insert(draft: Draft, text: string): Draft {
  const { caret, cut } = draft;
  return { text: `${draft.text.slice(0, caret)}${text}${draft.text.slice(caret)}`, caret: caret + text.length, cut };
}

export function replace(draft: Draft, from: number, to: number, text: string): Draft {
  return { ...draft, text: `${draft.text.slice(0, from)}${text}${draft.text.slice(to)}`, caret: from + text.length };
}

export const withText = (draft: Draft, text: string): Draft => ({ ...draft, text, caret: text.length });

/** Whether there is a line above or below the caret's. */
export const hasLineAbove = ({ text, caret }: Draft): boolean => text.slice(0, caret).includes("\n");
export const hasLineBelow = ({ text, caret }: Draft): boolean => text.slice(caret).includes("\n");

export function edit(draft: Draft, step: Edit): Draft {
  const { text, caret, cut } = draft;
  const before = text.slice(0, caret);
  const after = text.slice(caret);
  const at = (place: number): Draft => ({ ...draft, caret: Math.max(0, Math.min(text.length, place)) });
  const without = (from: number, to: number, keep = cut): Draft => ({
    text: `${text.slice(0, from)}${text.slice(to)}`,
    caret: from,
    cut: keep,
  });
  const previous = caret - (graphemes(lastLine(before)).at(-1)?.length ?? (before === "" ? 0 : 1));
  const following = caret + (graphemes(firstLine(after))[0]?.length ?? (after === "" ? 0 : 1));
  const near = before.slice(-MOST_WORD);
  const wordStart = caret - /(?:[\p{L}\p{N}_]+[^\p{L}\p{N}_]*|[^\p{L}\p{N}_]+)?$/u.exec(near)![0].length;
  const wordEnd = caret + /^[^\p{L}\p{N}_]*[\p{L}\p{N}_]*/u.exec(after)![0].length;
  const spaceStart = caret - /\S*\s*$/.exec(near)![0].length;
  const lineStart = before.lastIndexOf("\n") + 1;
  const lineEnd = caret + firstLine(after).length;
  switch (step) {
    case "left":
      return at(previous);
    case "right":
      return at(following);
    case "wordLeft":
      return at(wordStart);
    case "wordRight":
      return at(wordEnd);
    case "lineStart":
      return at(lineStart);
    case "lineEnd":
      return at(lineEnd);
    case "up":
      return at(inLineOf(text, lineStart - 1, caret - lineStart));
    case "down":
      return at(inLineOf(text, lineEnd + 1, caret - lineStart));
    case "backspace":
      return without(previous, caret);
    case "delete":
      return without(caret, following);
    case "cutWord":
      return without(spaceStart, caret, text.slice(spaceStart, caret));
    case "cutWordAfter":
      return without(caret, wordEnd, text.slice(caret, wordEnd));
    case "cutToStart":
      return without(lineStart, caret, text.slice(lineStart, caret));
    case "cutToEnd": {
      const end = lineEnd === caret ? following : lineEnd;
      return without(caret, end, text.slice(caret, end));
    }
    case "putBack":
      return insert(draft, cut);
    case "swap": {
      const first = graphemes(lastLine(before)).at(-1);
      const second = graphemes(firstLine(after))[0];
      if (!first || !second) return draft;
      return {
        ...draft,
        text: `${before.slice(0, -first.length)}${second}${first}${after.slice(second.length)}`,
        caret: following,
      };
    }
  }
}

const lastLine = (text: string) => text.slice(text.lastIndexOf("\n") + 1);
const firstLine = (text: string) => text.split("\n", 1)[0] ?? "";

/** The position at `offset` in the line around `place`, or the line's end if it is shorter. */
function inLineOf(text: string, place: number, offset: number): number {
  const start = text.lastIndexOf("\n", place - 1) + 1;
  const end = text.indexOf("\n", start);
  return Math.min(start + offset, end < 0 ? text.length : end);
}

export interface EditorRow {
  text: string;
  width: number;
}

/** Breaks the draft into rows, and returns them with the caret's row and column. */
export function layOut({ text, caret }: Draft, width: number): { rows: EditorRow[]; row: number; column: number } {
  const rows: EditorRow[] = [];
  let current = "";
  let used = 0;
  let place = { row: 0, column: 0 };
  let at = 0;
  const end = () => {
    rows.push({ text: current, width: used });
    current = "";
    used = 0;
  };
  for (const letter of graphemes(text)) {
    const shown = letter === "\t" ? "    " : letter;
    const wide = letter === "\n" ? 0 : widthOf(shown);
    if (used + wide > width) end();
    if (at <= caret && caret < at + letter.length) place = { row: rows.length, column: used };
    at += letter.length;
    if (letter === "\n") end();
    else {
      current += shown;
      used += wide;
    }
  }
  if (used >= width) end();
  if (caret >= text.length) place = { row: rows.length, column: used };
  rows.push({ text: current, width: used });
  return { rows, ...place };
}
