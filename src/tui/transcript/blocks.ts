import { terminalSafe } from "../../lib/terminal-safe.ts";
import { withoutEnd } from "../../lib/trim.ts";
import { createMarkdown } from "../markdown/stream.ts";
import { bold, coloured, dim, type Line, lineWidth, type Span } from "../text/style.ts";
import { wrapped } from "../text/wrap.ts";

/** Finished output, laid out when it is printed. */
export type Block = (width: number) => Line[];

/** The maximum width of prose in columns, since long lines are hard to read on a wide screen. */
export const PROSE = 110;
export const proseWidth = (width: number): number => Math.max(10, Math.min(PROSE, width));

export const safe = (text: string): string => terminalSafe(text).replaceAll("\t", "    ");

/** A message of the user. */
export function userBlock(text: string, tag = ""): Block {
  const head: Span[] = [{ text: "› ", style: { bold: true, colour: "cyan" } }, ...(tag ? [dim(`${tag} `)] : [])];
  const shown = folded(text, bold);
  return (width) => wrapped(shown, proseWidth(width), { first: head, rest: [{ text: "  " }] });
}

/** Text that was sent into the running turn. */
export function steerBlock(text: string): Block {
  const shown = folded(text, bold);
  return (width) => wrapped(shown, proseWidth(width), { first: [coloured("↳ ", "cyan")], rest: [{ text: "  " }] });
}

/** A quiet remark by IO itself. */
export function noteBlock(text: string): Block {
  const shown = folded(text, dim);
  return (width) => wrapped(shown, proseWidth(width), { first: [dim("· ")], rest: [dim("  ")] });
}

/** A message beyond either is shown by its beginning and its end. */
const FOLDED = { lines: 60, characters: 6_000 };
const BEGINNING = { lines: 20, characters: 2_000 };
const END = { lines: 10, characters: 1_000 };

function folded(text: string, styled: (text: string) => Span): Span[] {
  const lines = text.split("\n");
  if (lines.length <= FOLDED.lines && text.length <= FOLDED.characters) return [styled(safe(text))];
  const beginning = lines.slice(0, BEGINNING.lines).join("\n").slice(0, BEGINNING.characters);
  const end = lines.slice(-END.lines).join("\n").slice(-END.characters);
  const left = text.slice(beginning.length, text.length - end.length);
  const more = left.split("\n").length - 2;
  const size = more > 1 ? `${more} more lines` : `${left.length} more characters`;
  return [styled(safe(beginning)), dim(`\n… (${size})\n`), styled(safe(end))];
}

export function troubleBlock(text: string): Block {
  return (width) => wrapped([coloured(safe(text), "red")], proseWidth(width));
}

/** A longer word is an address, a path or data, which people copy as a whole. */
const LONGEST_WORD = 30;
const isProse = (line: string): boolean =>
  !/\S {2,}\S/.test(line) && line.split(" ").every((word) => word.length <= LONGEST_WORD);

/** A command's output, unchanged. Long sentences are wrapped between words; the terminal wraps other lines. */
export function plainBlock(text: string): Block {
  const lines = withoutEnd(safe(text), "\n").split("\n");
  return (width) =>
    lines.flatMap((line) => {
      const whole: Line = [{ text: line }];
      return lineWidth(whole) <= width || !isProse(line) ? [whole] : wrapped(whole, width);
    });
}

/** A last column narrower than this is wrapped by the terminal. */
const LEAST_COLUMN = 20;

/** Rows with two columns. Long text in the second wraps between words, inside its column. */
export function columnsBlock(text: string): Block {
  const lines = withoutEnd(safe(text), "\n").split("\n");
  return (width) =>
    lines.flatMap((line) => {
      const gap = /^\S/.test(line) ? /\S {2,}(?=\S)/.exec(line) : null;
      const lead = gap ? line.slice(0, gap.index + gap[0].length) : "";
      const whole: Line = [{ text: line }];
      if (lineWidth(whole) <= width || lead === "" || width - lead.length < LEAST_COLUMN) return [whole];
      const options = { first: [{ text: lead }], rest: [{ text: " ".repeat(lead.length) }] };
      return wrapped([{ text: line.slice(lead.length) }], width, options);
    });
}

/** A diff in which removed and added lines are coloured. Sentences about it are wrapped between words. */
export function differenceBlock(text: string): Block {
  const lines = withoutEnd(safe(text), "\n").split("\n");
  return (width) =>
    lines.flatMap((line) => {
      const whole: Line = [
        line.startsWith("+") ? coloured(line, "green") : line.startsWith("-") ? coloured(line, "red") : { text: line },
      ];
      const isSentence = /^[A-Z]/.test(line) && isProse(line);
      return isSentence && lineWidth(whole) > width ? wrapped(whole, width) : [whole];
    });
}

/** A complete Markdown text. */
export function markdownBlock(text: string, links: boolean): Block {
  return (width) => {
    const stream = createMarkdown({ links });
    stream.feed(text);
    stream.end();
    return stream.take(proseWidth(width));
  };
}

export const joined =
  (...blocks: Block[]): Block =>
  (width) =>
    blocks.flatMap((block, index) => (index === 0 ? block(width) : [[], ...block(width)]));
