import { describe, expect, test } from "vitest";
import { collectPatterns } from "../support/patterns/collect.ts";
import { doubtOf } from "../support/patterns/linear.ts";
import { BOUNDED, COMPOSED, WINDOWS } from "../support/patterns/table.ts";

const { patterns, composed } = collectPatterns();
const isBounded = (file: string, source: string) =>
  file in WINDOWS || BOUNDED.some((one) => one.file === file && one.source === source);

test("every regular expression is linear, or listed in the table with the longest text it is used on", () => {
  expect(patterns.length).toBeGreaterThan(500);
  const doubtful = patterns.flatMap(({ file, line, source, flags }) => {
    const doubt = doubtOf(source, flags);
    return doubt && !isBounded(file, source)
      ? [
          `${file}:${line} /${source}/${flags}: ${doubt.why}, as in ${JSON.stringify(doubt.prefix)} and then ${JSON.stringify(doubt.pump)} again and again`,
        ]
      : [];
  });
  expect(doubtful).toEqual([]);
});

test("the table has no obsolete or unnecessary entry", () => {
  for (const { file, source } of BOUNDED) {
    const found = patterns.find((one) => one.file === file && one.source === source);
    expect([file, source, found !== undefined]).toEqual([file, source, true]);
    expect([source, doubtOf(source, found!.flags) !== undefined]).toEqual([source, true]);
  }
});

test("regular expressions built at run time are listed in the table, and their results are linear", () => {
  const unknown = composed.filter(({ file, text }) => !COMPOSED.some((one) => one.file === file && text.includes(one.text)));
  expect(unknown).toEqual([]);
  for (const { instances } of COMPOSED)
    for (const [source, flags] of instances) expect([source, doubtOf(source, flags)]).toEqual([source, undefined]);
});

describe("the checker", () => {
  test.each([
    "(a+)+$",
    "(?:a|a)*b",
    "(?:a*)*b",
    "(?:a*b*)*c",
    "\\s+$",
    "a.*b",
    "x\\d+\\d+y",
    "^(?:\\w+\\s?)*$",
    "^-\\w*c\\w*$",
    "<a[^>]*>b",
    "(?=.*x)y|z(?=.*x)",
    "(?:[-_.]\\w+)*!",
    "(?:a?){20}a*b",
    "^\\s*x(?:.|\\s)*y$",
  ])("doubts /%s/", (source) => expect(doubtOf(source, "")).toBeDefined());
  test.each([
    ["^\\s*#", "m"],
    ["(^|\\n)\\s*x|\\n\\n+y", "g"],
  ] as const)("doubts /%s/%s", (source, flags) => expect(doubtOf(source, flags)).toBeDefined());
  test.each([
    ["\\s+", "g"],
    ["[^a-z]+", "g"],
    ["^\\w+$", ""],
    ["<!--[\\s\\S]*?(?:-->|$)", "g"],
    ["^[ \\t]*#", "m"],
    ['"[^"\\n]*"', "g"],
    ["\\bsk-[A-Za-z0-9_-]{20,}", "g"],
    ["(?<![.\\w])eval\\(", ""],
    ["^(?:a|b|cd)*$", ""],
  ] as const)("trusts /%s/%s", (source, flags) => expect(doubtOf(source, flags)).toBeUndefined());
});
