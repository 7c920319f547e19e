import { expect, test } from "vitest";
import { formatUndo } from "../../src/protocol/change-text.ts";

test("no name of a file passes for another line of an undo", () => {
  const file = (path: string) => ({ folder: "/p", path, state: "changed" as const });
  const files = [file("with space.txt"), file("a\n  deleted  b"), file("a\u202etxt.exe")];
  const text = formatUndo({
    id: "m_1",
    undone: true,
    files,
    kept: [{ folder: "/p", path: "c\nd", why: "changed since" }],
    notes: [],
  });
  expect(text.split("\n")).toEqual([
    "Undone: m_1. The same again does it again.",
    "/p:",
    "  changed  with space.txt",
    '  changed  "a\\n  deleted  b"',
    '  changed  "a\\u{202e}txt.exe"',
    "Left as they are (1):",
    '  "c\\nd": changed since',
  ]);
});
