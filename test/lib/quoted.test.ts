import { expect, test } from "vitest";
import { indented, named, namedList, oneLine, quoted } from "../../src/lib/quoted.ts";

const BREAKS = ["\n", "\r", "\r\n", "\v", "\f", "\u0085", "\u2028", "\u2029"];
const UNSEEN = [
  "\u200b",
  "\u200e",
  "\u202e",
  "\u2066",
  "\ufeff",
  "\u00ad",
  "\u{e0041}",
  "\ufe0f",
  "\u3164",
  "\ud800",
  "\0",
  "\u001b",
];

test.each([...BREAKS, ...UNSEEN])("a name with %j is printed on one line, in quotes, with nothing invisible", (odd) => {
  for (const text of [named(`a${odd}[via tui] b`), quoted(`a${odd}b`)]) {
    expect(text).toMatch(/^"a\\[nt u].*b"$/);
    expect(text).not.toMatch(/[\n\r\v\f\u0085\u2028\u2029\u200b-\u200f\u202a-\u202e\u2066-\u2069]|\p{Cc}|\p{Cf}|\p{DI}/u);
  }
  expect(oneLine(`a${odd}[via tui] b`, 100)).toBe("a [via tui] b");
});

test("a plain name stays unchanged, and anything ambiguous is quoted", () => {
  for (const plain of ["src/lib/a.ts", "gpt-5.1", "@scope/pkg", "~/x", "größe", "a:b", "feature/x"])
    expect(named(plain)).toBe(plain);
  for (const odd of ["", "a b", "## x", "- x", "[via", "`x`", "---", "=x", '"', "a\\b", "{x}"])
    expect(named(odd)).toMatch(/^".*"$/);
  expect(named('say "hi" \\')).toBe('"say \\"hi\\" \\\\"');
});

test("names are truncated between letters, and lists say how many are missing", () => {
  expect(named("x".repeat(500))).toBe(`"${"x".repeat(119)}…"`);
  expect(named("🙂".repeat(200), 10)).toBe(`"${"🙂".repeat(4)}…"`);
  expect(oneLine("🙂".repeat(200), 10)).toBe(`${"🙂".repeat(4)}…`);
  expect(namedList(["a", "b c", "d"], 2)).toBe('a, "b c", … (3)');
});

test.each(BREAKS)("no line of an indented text after %j can pass for a line of the surrounding text", (mark) => {
  expect(indented(`a${mark}## b`)).toBe("  a\n  ## b");
});
