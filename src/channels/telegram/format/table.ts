/** Formats a table as aligned lines, because Telegram has no tables. */
export function tableText(rows: readonly (readonly string[])[]): string {
  const columns = Math.max(0, ...rows.map((row) => row.length));
  const widths = Array.from({ length: columns }, (_, at) => Math.max(1, ...rows.map((row) => widthOf(row[at] ?? ""))));
  const lines = rows.map((row) =>
    widths
      .map((width, at) => padded(row[at] ?? "", width))
      .join(" | ")
      .trimEnd(),
  );
  const rule = widths.map((width) => "-".repeat(width)).join("-+-");
  return [...lines.slice(0, 1), rule, ...lines.slice(1)].join("\n");
}

const padded = (text: string, width: number) => text + " ".repeat(Math.max(0, width - widthOf(text)));

/** The width in columns; wide characters take two. */
function widthOf(text: string): number {
  let width = 0;
  for (const { segment } of new Intl.Segmenter().segment(text)) width += WIDE.test(segment) ? 2 : 1;
  return width;
}

const WIDE = /^(?:\p{Emoji_Presentation}|\p{Script=Han}|\p{Script=Hiragana}|\p{Script=Katakana}|\p{Script=Hangul})/u;
