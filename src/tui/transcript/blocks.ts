import { terminalSafe } from "../../lib/terminal-safe.ts";
import { withoutEnd } from "../../lib/trim.ts";
import { createMarkdown } from "../markdown/stream.ts";
import { bold, coloured, dim, type Line, type Span } from "../text/style.ts";
import { wrapped } from "../text/wrap.ts";

/** Something finished, laid out when it is printed. */
export type Block = (width: number) => Line[];

/** Long lines are hard to read, however wide the screen is. */
export const PROSE = 110;
export const proseWidth = (width: number): number => Math.max(10, Math.min(PROSE, width));

export const safe = (text: string): string => terminalSafe(text).replaceAll("\t", "    ");

/** What a person said. */
export function userBlock(text: string, tag = ""): Block {
  const head: Span[] = [{ text: "› ", style: { bold: true, colour: "cyan" } }, ...(tag ? [dim(`${tag} `)] : [])];
  return (width) => wrapped([bold(safe(text))], proseWidth(width), { first: head, rest: [{ text: "  " }] });
}

/** What was said into a turn that runs. */
export function steerBlock(text: string): Block {
  return (width) => wrapped([bold(safe(text))], proseWidth(width), { first: [coloured("↳ ", "cyan")], rest: [{ text: "  " }] });
}

/** A quiet remark of IO's own. */
export function noteBlock(text: string): Block {
  return (width) => wrapped([dim(safe(text))], proseWidth(width), { first: [dim("· ")], rest: [dim("  ")] });
}

export function troubleBlock(text: string): Block {
  return (width) => wrapped([coloured(safe(text), "red")], proseWidth(width));
}

/** What a command answered, as it stands; the terminal wraps what is too long. */
export function plainBlock(text: string): Block {
  const lines = withoutEnd(safe(text), "\n").split("\n");
  return () => lines.map((line) => [{ text: line }]);
}

/** A difference, with what went and what came in their colours. */
export function differenceBlock(text: string): Block {
  const lines = withoutEnd(safe(text), "\n").split("\n");
  return () =>
    lines.map((line) => [
      line.startsWith("+") ? coloured(line, "green") : line.startsWith("-") ? coloured(line, "red") : { text: line },
    ]);
}

/** A whole text of markdown. */
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
