import { describe, expect, test } from "vitest";
import { createShaper } from "../../../src/channels/telegram/format/answer.ts";
import { type Entity, parseHtml } from "../../support/telegram/html.ts";

const shape = createShaper();

/** What a reader sees of an answer, message by message. */
function seen(markdown: string): { text: string; entities: Entity[] }[] {
  return shape(markdown).pieces.map(({ html, plain }) => {
    const parsed = parseHtml(html);
    if ("refused" in parsed) throw new Error(`${parsed.refused}\n${html}`);
    expect(parsed.text).toBe(plain.trim());
    expect(parsed.text.length).toBeLessThanOrEqual(4_096);
    expect(parsed.text).not.toBe("");
    return parsed;
  });
}
const entitiesOf = (markdown: string) =>
  seen(markdown).flatMap(({ text, entities }) =>
    entities.map(({ type, offset, length }) => [type, text.slice(offset, offset + length)]),
  );

describe("markdown in a chat", () => {
  test("emphasis, code, links, quotes, headings and lists look as they should, and no marker is left", () => {
    const markdown =
      "# Title\n\nsome **bold**, *slanted*, ~~gone~~ and `code` with [a link](https://example.org/?a=1&b=2).\n\n> quoted\n> lines\n\n- one\n- two\n  - deeper\n\n3. third\n4. fourth";
    const [message] = seen(markdown);
    expect(message!.text).toBe(
      "Title\n\nsome bold, slanted, gone and code with a link.\n\nquoted\nlines\n\n• one\n• two\n  • deeper\n\n3. third\n4. fourth",
    );
    expect(entitiesOf(markdown)).toEqual([
      ["bold", "Title"],
      ["bold", "bold"],
      ["italic", "slanted"],
      ["strikethrough", "gone"],
      ["code", "code"],
      ["text_link", "a link"],
      ["blockquote", "quoted\nlines"],
    ]);
    expect(message!.entities.find(({ type }) => type === "text_link")!.url).toBe("https://example.org/?a=1&b=2");
  });

  test("HTML in an answer is shown as text, wherever it stands", () => {
    const html = '<b>no</b> <script>alert("x")</script> &amp; <a href="https://evil.example">here</a>';
    expect(seen(`${html}\n\n\`${html}\`\n\n\`\`\`\n${html}\n\`\`\``)[0]!.text).toBe(
      `${html.replace("&amp;", "&")}\n\n${html}\n\n${html}`,
    );
    expect(entitiesOf(html)).toEqual([]);
  });

  test("a link that leads into the program or to a script is text", () => {
    expect(
      entitiesOf("[a](javascript:alert(1)) [b](file:///etc/passwd) [c](tg://user?id=1) [d](docs/a.md) [e](ftp://x.example)"),
    ).toEqual([["text_link", "c"]]);
  });

  test("code keeps its language and its letters, inside a list and around fences too", () => {
    const code = "const a = `<b>`;\n  // ``` not the end";
    const [message] = seen(`- look:\n\n  \`\`\`\`ts\n  ${code.replace("\n", "\n  ")}\n  \`\`\`\`\n\nafter`);
    const pre = message!.entities.find(({ type }) => type === "pre")!;
    expect(message!.text.slice(pre.offset, pre.offset + pre.length)).toBe(code);
    expect(pre.language).toBe("ts");
    expect(message!.text).toMatch(/^• look:\n\n[\s\S]*\n\nafter$/);
  });

  test("a table is aligned lines in one block", () => {
    const [message] = seen("| name | n |\n|---|---|\n| **kettle** | 1 |\n| 茶 | 22 |");
    expect(message!.text).toBe("name   | n\n-------+---\nkettle | 1\n茶     | 22");
    expect(message!.entities.map(({ type }) => type)).toEqual(["pre"]);
  });

  test("code inside emphasis or a link is code alone, as Telegram wants it", () => {
    expect(entitiesOf("**bold `code` bold** and [see `x`](https://example.org)")).toEqual([
      ["bold", "bold "],
      ["code", "code"],
      ["bold", " bold"],
      ["text_link", "see "],
      ["code", "x"],
    ]);
    expect(shape("**bold `code`**").pieces[0]!.html).toBe("<b>bold </b><code>code</code>");
  });

  test("half a letter, which would have Telegram refuse the whole, is shown as one that is missing", () => {
    expect(shape("half \ud83d a letter").pieces).toEqual([{ html: "half \ufffd a letter", plain: "half \ufffd a letter" }]);
  });
});

describe("a long answer", () => {
  test("of exactly what a message holds is one message, one letter more makes two", () => {
    expect(seen("a".repeat(4_096))).toHaveLength(1);
    expect(seen("a".repeat(4_097)).map(({ text }) => text.length)).toEqual([4_096, 1]);
  });

  test("of 30,000 characters is split between its paragraphs, and nothing is lost", () => {
    const paragraphs = Array.from(
      { length: 60 },
      (_, index) => `Paragraph ${index}: ${"words and more ".repeat(32)}end ${index}.`,
    );
    const messages = seen(paragraphs.join("\n\n"));
    expect(messages.length).toBeGreaterThan(6);
    expect(messages.map(({ text }) => text).join("\n\n")).toBe(paragraphs.join("\n\n"));
    for (const { text } of messages) expect(text).toMatch(/^Paragraph \d+[\s\S]*end \d+\.$/);
  });

  test("is never split inside an entity or a block of code that fits into one message", () => {
    const block = `\`\`\`js\n${"line();\n".repeat(300)}\`\`\``;
    const bold = `**${"strong words ".repeat(60)}end**`;
    const messages = seen(Array.from({ length: 6 }, () => `${block}\n\nfiller ${"x ".repeat(500)} ${bold}`).join("\n\n"));
    const all = messages.flatMap(({ entities }) => entities);
    expect(all.filter(({ type }) => type === "pre").map(({ length }) => length)).toEqual(Array(6).fill(300 * 8 - 1));
    expect(all.filter(({ type }) => type === "bold").map(({ length }) => length)).toEqual(Array(6).fill(60 * 13 + 3));
  });

  test("is cut ahead of an entity that does not fit any more, whatever spaces it has", () => {
    const words = `${"strong words ".repeat(60)}end`;
    for (const marked of [`**${words}**`, `*${words}*`, `~~${words}~~`, `\`${words}\``, `[${words}](https://example.org)`]) {
      const messages = seen(`${"x ".repeat(1_900)}${marked} and after`);
      expect(messages.map(({ entities }) => entities.map(({ length }) => length))).toEqual([[], [words.length]]);
    }
  });

  test("keeps letters whole that are made of several: emoji, families, flags, marks", () => {
    for (const letter of ["👩‍👩‍👧‍👦", "🇩🇪", "e\u0301", "👍🏽"]) {
      const messages = seen(`a${letter.repeat(3_000)}`);
      expect(messages.map(({ text }) => text).join("")).toBe(`a${letter.repeat(3_000)}`);
      const letters = [...new Intl.Segmenter().segment(messages.map(({ text }) => text).join("\u0000"))];
      expect(new Set(letters.map(({ segment }) => segment))).toEqual(new Set(["a", letter, "\u0000"]));
    }
  });

  test("in right-to-left writing is split at its spaces", () => {
    const text = "שלום עולם ".repeat(1_000).trim();
    const messages = seen(text);
    expect(messages.map((each) => each.text).join(" ")).toBe(text);
  });

  test("with more entities than a message may have goes into several", () => {
    const messages = seen(Array.from({ length: 250 }, (_, index) => `**w${index}**`).join(" "));
    expect(messages.flatMap(({ entities }) => entities)).toHaveLength(250);
    for (const { entities } of messages) expect(entities.length).toBeLessThanOrEqual(100);
  });

  test("with long code has it as a file, named by its language", () => {
    const code = "print('x')\n".repeat(500);
    const { files, pieces } = shape(`Here:\n\n\`\`\`python\n${code}\`\`\`\n\nDone.`);
    expect(files).toEqual([{ name: "code-1.py", content: code }]);
    expect(pieces.map(({ plain }) => plain)).toEqual(["Here:\n\n[500 lines: code-1.py]\n\nDone."]);
  });

  test("that is one endless quote is cut at its lines", () => {
    const messages = seen(Array.from({ length: 400 }, (_, index) => `> quoted line number ${index}`).join("\n"));
    expect(messages.length).toBeGreaterThan(1);
    for (const { text, entities } of messages) expect(entities).toEqual([{ type: "blockquote", offset: 0, length: text.length }]);
  });
});
