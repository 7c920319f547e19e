import { dim, type Line, type Style } from "../text/style.ts";

/** The type of a single Markdown line. */
export type LineKind =
  | { kind: "blank" }
  | { kind: "fence"; sign: string; language: string; indent: number; quotes: number }
  | { kind: "heading"; level: number; text: string; lead: Lead }
  | { kind: "rule"; lead: Lead }
  | { kind: "item"; text: string; lead: Lead }
  | { kind: "text"; text: string; lead: Lead; quotes: number };

/** The prefix of a block's first line and that of its other lines. */
export interface Lead {
  first: Line;
  rest: Line;
}

/** A longer line is treated as a paragraph, whatever it begins with. */
export const MOST_LINE = 4_000;
const FENCE = /^( {0,12})(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)(?:\s+#+)?\s*$/;
const RULE = /^ {0,3}(?:(?:-\s*){3,}|(?:\*\s*){3,}|(?:_\s*){3,})$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(?:\[([ xX])\]\s+)?(.*)$/;
/** An incomplete line that may still become a fence, heading, list or table. */
const UNDECIDED = /^(?:[-*+_]+|\d{1,9}[.)]?|#{1,6}|`+[^\s`]*|~\S*|\|.*)?$/;

/** Whether the line may still become something other than text. It is not shown until it is complete. */
export const isUndecided = (line: string): boolean => line.length <= MOST_LINE && UNDECIDED.test(withoutQuotes(line).text.trim());

export function kindOf(line: string): LineKind {
  if (line.trim() === "") return { kind: "blank" };
  const { quotes, text } = withoutQuotes(line);
  const isShort = text.length <= MOST_LINE;
  const before: Line = quotes > 0 ? [dim("▏ ".repeat(quotes))] : [];
  const fence = isShort && FENCE.exec(text);
  if (fence) return { kind: "fence", sign: fence[2]!, language: fence[3] ?? "", indent: fence[1]!.length, quotes };
  const heading = isShort && HEADING.exec(text);
  if (heading)
    return { kind: "heading", level: heading[1]!.length, text: heading[2] ?? "", lead: { first: before, rest: before } };
  if (isShort && RULE.test(text)) return { kind: "rule", lead: { first: before, rest: before } };
  const item = isShort && ITEM.exec(text);
  if (item) return { kind: "item", text: item[4] ?? "", lead: itemLead(before, item) };
  const indent = quotes > 0 ? 0 : Math.min(8, /^ */.exec(text)![0].length);
  const margin: Line = indent >= 2 ? [...before, { text: " ".repeat(indent) }] : before;
  return { kind: "text", text: text.trim(), lead: { first: margin, rest: margin }, quotes };
}

/** Whether a line closes a fence opened with `sign`. */
export function closesFence(line: string, sign: string): boolean {
  const text = withoutQuotes(line).text.trim();
  return text.length >= sign.length && text[0] === sign[0] && text.split("").every((each) => each === sign[0]);
}

/** A line inside a fence, without the fence's indentation and quote marks. */
export function insideFence(line: string, { indent, quotes }: { indent: number; quotes: number }): string {
  const text = quotes > 0 ? withoutQuotes(line).text : line;
  const spaces = /^ */.exec(text)![0].length;
  return text.slice(Math.min(indent, spaces));
}

export function headingStyle(level: number): Style {
  return level === 1 ? { bold: true, underline: true } : { bold: true };
}

function withoutQuotes(line: string): { quotes: number; text: string } {
  const marks = /^(?: {0,3}> ?)+/.exec(line)?.[0] ?? "";
  return { quotes: marks.split(">").length - 1, text: line.slice(marks.length) };
}

function itemLead(before: Line, [, space = "", mark = "", box]: RegExpExecArray): Lead {
  const depth = " ".repeat(Math.min(24, space.replace(/\t/g, "    ").length));
  const bullet = /\d/.test(mark) ? mark : "•";
  const sign = box === undefined ? `${bullet} ` : box === " " ? "☐ " : "☑ ";
  return { first: [...before, { text: `${depth}${sign}` }], rest: [...before, { text: " ".repeat(depth.length + sign.length) }] };
}
