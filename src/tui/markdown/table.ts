import { bold, dim, type Line, lineWidth, type Span } from "../text/style.ts";
import { wrapped } from "../text/wrap.ts";
import { MOST_LINE } from "./blocks.ts";
import { parseInline } from "./inline.ts";

type Side = "left" | "right" | "centre";

export interface TableOptions {
  width: number;
  links: boolean;
}

const RULE = /^\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$/;
const GAP = 2;

/** Whether these two lines start a table. */
export function beginsTable(head: string, rule: string): boolean {
  return (
    head.includes("|") &&
    rule.includes("-") &&
    rule.length <= MOST_LINE &&
    RULE.test(rule) &&
    cellsOf(head).length === cellsOf(rule).length
  );
}

export const looksLikeRow = (line: string): boolean => line.includes("|") && line.trim() !== "";

/** The column widths: as narrow as possible, and reduced until the table fits. */
export function columnWidths(rows: readonly string[], { width, links }: TableOptions): number[] {
  const [head = "", , ...body] = rows;
  const wanted = cellsOf(head).map((_, column) =>
    Math.max(3, ...[head, ...body].map((row) => lineWidth(words(cellsOf(row)[column] ?? "", links)))),
  );
  const room = Math.max(wanted.length * 4, width - GAP * (wanted.length - 1));
  const widths = [...wanted];
  while (widths.reduce((sum, each) => sum + each, 0) > room) {
    const widest = widths.indexOf(Math.max(...widths));
    if (widths[widest]! <= 4) break;
    widths[widest]! -= 1;
  }
  return widths;
}

/** The lines of one row. Text too long for its cell wraps. */
export function rowLines(row: string, rule: string, widths: readonly number[], links: boolean, isHead: boolean): Line[] {
  const cells = cellsOf(row);
  const sides = cellsOf(rule).map(sideOf);
  const columns = widths.map((width, column) => {
    const inside = words(cells[column] ?? "", links).map((span) => (isHead ? bold(span.text) : span));
    return wrapped(inside, width);
  });
  const height = Math.max(1, ...columns.map(({ length }) => length));
  return Array.from({ length: height }, (_, index) =>
    columns.flatMap((lines, column): Span[] => {
      const isLast = column === widths.length - 1;
      const cell = padded(lines[index] ?? [], widths[column]!, sides[column] ?? "left", isLast);
      return isLast ? [...cell] : [...cell, { text: " ".repeat(GAP) }];
    }),
  );
}

/** The line below the table's header. */
export function headRule(widths: readonly number[]): Line {
  return [dim(widths.map((width) => "─".repeat(width)).join(" ".repeat(GAP)))];
}

function padded(line: Line, width: number, side: Side, isLast: boolean): Span[] {
  const free = Math.max(0, width - lineWidth(line));
  const left = side === "right" ? free : side === "centre" ? Math.floor(free / 2) : 0;
  const right = isLast ? 0 : free - left;
  return [...(left > 0 ? [{ text: " ".repeat(left) }] : []), ...line, ...(right > 0 ? [{ text: " ".repeat(right) }] : [])];
}

function words(cell: string, links: boolean): Line {
  return parseInline(cell, { isOpen: false, links }).spans;
}

function cellsOf(row: string): string[] {
  const inner = row
    .trim()
    .replace(/^\|/, "")
    .replace(/(?<!\\)\|$/, "");
  return inner.split(/(?<!\\)\|/).map((cell) => cell.trim().replace(/\\\|/g, "|"));
}

function sideOf(rule: string): Side {
  if (!rule.endsWith(":")) return "left";
  return rule.startsWith(":") ? "centre" : "right";
}
