import { expect, test } from "vitest";
import { createMarkdown } from "../../src/tui/markdown/stream.ts";
import { type Line, lineText, paint } from "../../src/tui/text/style.ts";

const SAMPLE = `# A heading with **bold** in it

Some text with **bold words**, *italic ones*, \`code\`, ~~gone~~ and a [link](https://example.org/a_b) to follow, which is long enough to be wrapped more than once on a narrow screen.
The next line of it, with 2 ** 3 and snake_case_name and https://example.org/page.

- one
- **two** with more words than fit on a line of a narrow terminal, so that it wraps
  - nested
1. first
2) second
- [x] done
- [ ] open

> quoted *words*
> go on

| name | what it is | n |
|---|:---:|--:|
| \`a\` | **first** | 1 |
| b | a cell that is much too long for a narrow screen and has to be broken | 22 |

\`\`\`ts
const a = "x"; // why
/* long
comment */ function f() { return \`**not bold**\`; }
\`\`\`
---
***both*** and **over
two lines** end with an emoji 👩‍👩‍👧 and 漢字.
`;

function streamed(pieces: readonly string[], width: number): string[] {
  const stream = createMarkdown({ links: false });
  const lines: Line[] = [];
  for (const piece of pieces) {
    stream.feed(piece);
    lines.push(...stream.take(width));
    stream.live(width);
  }
  stream.end();
  lines.push(...stream.take(width));
  return lines.map(lineText);
}

test.each([20, 60, 120])("an answer looks the same however it was cut on its way, %i columns wide", (width) => {
  const whole = streamed([SAMPLE], width);
  expect(streamed(SAMPLE.split(""), width)).toEqual(whole);
  expect(streamed(SAMPLE.split(/(?<=\s)/), width)).toEqual(whole);
});

test("no mark of markdown stays, and nothing else is lost", () => {
  const text = streamed([SAMPLE], 120).join("\n");
  expect(text).not.toMatch(/```|~~|^#|\[link\]|^\|/m);
  expect(text).toContain("2 ** 3 and snake_case_name and https://example.org/page.");
  expect(text).toContain('  const a = "x"; // why');
  expect(text).toContain("return `**not bold**`;");
  expect(text).toContain("• two with more words");
  expect(text).toContain("  • nested");
  expect(text).toContain("☑ done");
  expect(text).toContain("link (https://example.org/a_b)");
  expect(text).toContain("both and over\ntwo lines end with an emoji 👩‍👩‍👧 and 漢字.");
});

test("while an answer comes in, no half of a mark is ever shown", () => {
  const stream = createMarkdown({ links: false });
  const shown: string[] = [];
  for (const letter of "Some **bold** and `code` and [a link](https://e.org).\n\n```js\nlet a;\n```\n\n**end** of ") {
    stream.feed(letter);
    shown.push(...stream.take(80).map(lineText), ...stream.live(80).map(lineText));
  }
  expect(shown.filter((line) => /[*`[\]]|\(ht?t?p?$/.test(line))).toEqual([]);
  expect(shown.at(-1)).toBe("end of");
});

test("what is finished is given out early and once: a long answer leaves no more than its last block behind", () => {
  const stream = createMarkdown({ links: false });
  const seen: string[] = [];
  let most = 0;
  for (let index = 1; index <= 300; index += 1) {
    stream.feed(`line ${index} of the answer\n${index % 50 === 0 ? "\n" : ""}`);
    seen.push(...stream.take(80).map(lineText));
    most = Math.max(most, stream.live(80).length);
  }
  stream.end();
  seen.push(...stream.take(80).map(lineText));
  expect(seen.filter(Boolean)).toEqual(Array.from({ length: 300 }, (_, index) => `line ${index + 1} of the answer`));
  expect(most).toBeLessThanOrEqual(1);
});

test("a paragraph of one endless line is given out row by row, at every width that the screen takes meanwhile", () => {
  const stream = createMarkdown({ links: false });
  const words = Array.from({ length: 2_000 }, (_, index) => `w${index}`);
  const seen: string[] = [];
  for (const [index, word] of words.entries()) {
    const width = index < 700 ? 80 : index < 1_400 ? 40 : 120;
    stream.feed(`${word} `);
    seen.push(...stream.take(width).map(lineText));
    expect(stream.live(width).length).toBeLessThan(20);
  }
  stream.end();
  seen.push(...stream.take(80).map(lineText));
  expect(seen.join(" ").split(/\s+/).filter(Boolean)).toEqual(words);
});

test("control characters of a model never reach the screen, not even in a link", () => {
  const stream = createMarkdown({ links: true });
  stream.feed("a\u001b[2Jb [x](https://e.org/\u001b]52;c;Z\u0007y) `\u009b1A` \u202eback\n\n```\u001b[31m\ncode\u001b[3J\n```\n");
  stream.end();
  const painted = stream.take(80).map((line) => paint(line, { colour: true, links: true }));
  const ours = painted.map((line) => line.split(/\p{Cc}\[[\d;]*m|\p{Cc}\]8;;[!-~]*\p{Cc}\\/u).join("")).join("");
  expect(ours).not.toMatch(/[\p{Cc}\u202e]/u);
});
