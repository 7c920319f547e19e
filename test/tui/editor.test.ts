import { expect, test } from "vitest";
import { type Edit, edit, emptyDraft, insert, layOut, typed } from "../../src/tui/input/editor.ts";

const after = (text: string, ...steps: Edit[]) => {
  const { text: left, caret } = steps.reduce(edit, insert(emptyDraft, text));
  return `${left.slice(0, caret)}|${left.slice(caret)}`;
};

test("the caret goes over whole letters, words and lines, and what is cut can be put back", () => {
  expect(after("añ👩‍👩‍👧", "left")).toBe("añ|👩‍👩‍👧");
  expect(after("e\u0301x", "left", "backspace")).toBe("|x");
  expect(after("one two", "wordLeft", "delete")).toBe("one |wo");
  expect(after("one two  ", "cutWord", "cutWord", "putBack")).toBe("one |");
  expect(after("ab\ncd", "up")).toBe("ab|\ncd");
  expect(after("ab\ncd", "up", "cutToStart", "down")).toBe("\n|cd");
  expect(after("ab\ncd", "up", "cutToEnd")).toBe("ab|cd");
  expect(after("abc", "left", "swap")).toBe("acb|");
  expect(after("", "backspace", "left", "delete", "cutWord")).toBe("|");
});

test("what is pasted keeps its lines and tabs and loses what a terminal would obey", () => {
  expect(typed("a\r\nb\rc\td\x1b[2J\u009b")).toBe("a\nb\nc\td[2J");
});

test("a line wider than the screen is broken, and the caret is where the eye expects it", () => {
  const draft = insert(emptyDraft, "漢字abc\nx");
  expect(layOut(draft, 4)).toEqual({
    rows: [
      { text: "漢字", width: 4 },
      { text: "abc", width: 3 },
      { text: "x", width: 1 },
    ],
    row: 2,
    column: 1,
  });
  expect(layOut({ ...draft, caret: 1 }, 4)).toMatchObject({ row: 0, column: 2 });
  // A wide character does not fit into the last column of a row.
  expect(layOut(insert(emptyDraft, "漢字漢"), 5).rows).toEqual([
    { text: "漢字", width: 4 },
    { text: "漢", width: 2 },
  ]);
  expect(layOut(insert(emptyDraft, "abcd"), 4)).toMatchObject({ row: 1, column: 0 });
});
