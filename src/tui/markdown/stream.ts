import { terminalSafe } from "../../lib/terminal-safe.ts";
import { dim, type Line, type Span, type Style } from "../text/style.ts";
import { chop, type Wrapped, wrap } from "../text/wrap.ts";
import { closesFence, headingStyle, insideFence, isUndecided, kindOf, type Lead, type LineKind } from "./blocks.ts";
import { type CodeState, highlight } from "./highlight.ts";
import { parseInline } from "./inline.ts";
import { beginsTable, columnWidths, headRule, looksLikeRow, rowLines } from "./table.ts";

interface TextBlock {
  kind: "text";
  source: string;
  lead: Lead;
  quotes: number;
  style: Style;
  /** How many of its displayed characters are already printed. */
  printed: number;
  isBegun: boolean;
}
interface CodeBlock {
  kind: "code";
  sign: string;
  language: string;
  indent: number;
  quotes: number;
  state: CodeState;
}
interface TableBlock {
  kind: "table";
  rows: string[];
  /** The column widths, fixed once some of its rows are printed. */
  widths?: number[];
  printed: number;
}
type Block = TextBlock | CodeBlock | TableBlock;

interface State {
  block: Block | undefined;
  /** Whether a blank line is due before the next block. */
  gap: boolean;
  any: boolean;
}

/** A table with more rows than this is printed as it arrives, with the column widths known by then. */
const TABLE_ROWS = 20;
/** A line longer than this can no longer become a mark. */
const LONG_LINE = 300;
const CODE_MARGIN: Span = { text: "  " };

export interface MarkdownStream {
  feed(text: string): void;
  /** Returns the lines that will not change any more, each once. `most` limits how many lines of Markdown are processed. */
  take(width: number, most?: number): Line[];
  /** Whether more lines are ready to be taken. */
  isBehind(): boolean;
  /** The unfinished rest, as it would look if nothing more arrived. */
  live(width: number): Line[];
  /** Called when no more text will come. */
  end(): void;
  /** Whether a block is incomplete, so that other output would tear it apart. */
  isInside(): boolean;
}

/**
 * Renders streamed Markdown as terminal lines. Finished lines are returned once; the unfinished rest can be shown meanwhile.
 */
export function createMarkdown({ links }: { links: boolean }): MarkdownStream {
  let waiting = "";
  let state: State = { block: undefined, gap: false, any: false };
  let isEnded = false;
  /** Whether the last line is so long that its rendering started before its end arrived. */
  let isAdopted = false;

  const finished = (lines: string[], width: number): Line[] => {
    const out: Line[] = [];
    for (const line of lines) state = consume(state, line, out, { width, links });
    return out;
  };

  return {
    feed(text) {
      waiting += terminalSafe(text).replaceAll("\t", "    ");
    },
    take(width, most = Number.POSITIVE_INFINITY) {
      const out: Line[] = [];
      const lines = waiting.split("\n");
      waiting = (lines.length > most ? lines.splice(most).join("\n") : lines.pop()) ?? "";
      if (waiting.includes("\n")) {
        if (isAdopted) state = append(state, lines.shift() ?? "");
        isAdopted = false;
        return [...out, ...finished(lines, width)];
      }
      if (isAdopted && lines.length > 0) {
        state = append(state, lines.shift()!);
        isAdopted = false;
      }
      out.push(...finished(lines, width));
      if (isAdopted || (state.block?.kind !== "code" && waiting.length > LONG_LINE)) {
        if (isAdopted) state = append(state, waiting);
        else out.push(...finished([waiting], width));
        isAdopted = state.block?.kind === "text";
        waiting = "";
      }
      if (isEnded && waiting !== "") {
        out.push(...finished([waiting], width));
        waiting = "";
      }
      if (isEnded) state = close(state, out, { width, links });
      else state = settle(state, out, { width, links, isPartial: isAdopted });
      return out;
    },
    live(width) {
      const out: Line[] = [];
      let shown = copy(state);
      const partial = waiting.includes("\n") ? "" : waiting;
      if (partial !== "" && (shown.block?.kind === "code" ? !/^\s*[`~]+$/.test(partial) : !isUndecided(partial)))
        shown = isAdopted ? append(shown, partial) : consume(shown, partial, out, { width, links, isPartial: true });
      rest(shown, out, { width, links });
      return out.flatMap((line) => chop(line, width));
    },
    end() {
      isEnded = true;
    },
    isBehind: () => waiting.includes("\n"),
    isInside: () => state.block !== undefined || waiting !== "",
  };
}

interface Options {
  width: number;
  links: boolean;
  isPartial?: boolean;
}

/** Processes one more line of Markdown and appends finished lines to `out`. */
function consume(state: State, line: string, out: Line[], options: Options): State {
  const { block } = state;
  if (block?.kind === "code") {
    if (closesFence(line, block.sign)) return { ...state, block: undefined, gap: true };
    const code = highlight(insideFence(line, block), block.language, block.state);
    out.push([CODE_MARGIN, ...code.line]);
    return { ...state, block: { ...block, state: code.state }, any: true };
  }
  if (block?.kind === "table") {
    if (looksLikeRow(line)) return settle({ ...state, block: { ...block, rows: [...block.rows, line] } }, out, options);
    return consume(close(state, out, options), line, out, options);
  }
  const kind = kindOf(line);
  if (block?.kind === "text" && kind.kind === "text" && kind.quotes === block.quotes) {
    if (!block.isBegun && block.printed === 0 && beginsTable(block.source, line))
      return { ...state, block: { kind: "table", rows: [block.source, line], printed: 0 } };
    const more = { ...block, source: `${block.source}\n${kind.text}` };
    return settle({ ...state, block: more }, out, options);
  }
  return open(close(state, out, options), kind, out, options);
}

function open(state: State, kind: LineKind, out: Line[], options: Options): State {
  if (kind.kind === "blank") return { ...state, gap: state.any };
  const wantsGap = state.gap || (state.any && (kind.kind === "heading" || kind.kind === "fence"));
  if (wantsGap) out.push([]);
  const next: State = { block: undefined, gap: false, any: true };
  switch (kind.kind) {
    case "fence": {
      const { sign, language, indent, quotes } = kind;
      return { ...next, block: { kind: "code", sign, language, indent, quotes, state: undefined } };
    }
    case "rule":
      out.push([...kind.lead.first, dim("─".repeat(Math.min(24, options.width)))]);
      return next;
    case "heading": {
      const heading = textBlock(kind.text, kind.lead, 0, headingStyle(kind.level));
      if (options.isPartial) return { ...next, block: heading };
      return { ...close({ ...next, block: heading }, out, options), gap: true };
    }
    case "item":
    case "text": {
      const block = textBlock(kind.text, kind.lead, kind.kind === "text" ? kind.quotes : 0, {});
      return settle({ ...next, block }, out, options);
    }
  }
}

function textBlock(source: string, lead: Lead, quotes: number, style: Style): TextBlock {
  return { kind: "text", source, lead, quotes, style, printed: 0, isBegun: false };
}

/** Moves the lines that are final out of an open block. */
function settle(state: State, out: Line[], { width, links, isPartial = false }: Options): State {
  const { block } = state;
  if (block?.kind === "table" && block.rows.length > TABLE_ROWS && !isPartial) {
    const widths = block.widths ?? columnWidths(block.rows, { width, links });
    out.push(...tableLines({ ...block, widths }, { width, links }));
    return { ...state, block: { ...block, widths, printed: block.rows.length } };
  }
  if (block?.kind !== "text") return state;
  if (isPartial) return settleLong(state, block, out, { width, links });
  // The first line of a possible table waits for the second.
  if (!block.source.includes("\n") && !block.isBegun && block.source.includes("|")) return state;
  return printStable(state, block, out, { width, links }, (at, lines) => at < lines);
}

/** Moves all rows except the last out of a line whose end has not arrived. */
function settleLong(state: State, block: TextBlock, out: Line[], options: Options): State {
  if (block.source.length < LONG_LINE) return state;
  return printStable(state, block, out, options, (at, lines) => at < lines - 1);
}

function printStable(
  state: State,
  block: TextBlock,
  out: Line[],
  { width, links }: Options,
  isOver: (at: number, lines: number) => boolean,
): State {
  const { spans, stable, bare } = parseInline(block.source, { isOpen: true, links }, block.style);
  const lines = wrapRest(spans, block, width);
  let printed = block.printed;
  let isBegun = block.isBegun;
  for (const [at, { line, end }] of lines.entries()) {
    if (end > stable || !isOver(at, lines.length)) break;
    out.push(line);
    printed = end;
    isBegun = true;
  }
  const words = bare.find(({ shown, length }) => shown <= printed && printed <= shown + length);
  if (!words) return { ...state, block: { ...block, printed, isBegun } };
  const source = block.source.slice(words.source + printed - words.shown);
  return { ...state, block: { ...block, source, printed: 0, isBegun } };
}

/** Closes the open block and outputs the rest of it. */
function close(state: State, out: Line[], options: Options): State {
  rest(state, out, options, false);
  return { ...state, block: undefined };
}

function rest({ block }: State, out: Line[], { width, links }: Options, isOpen = true): void {
  if (block?.kind === "table") out.push(...tableLines(block, { width, links }));
  if (block?.kind !== "text") return;
  const { spans } = parseInline(block.source, { isOpen, links }, block.style);
  out.push(...wrapRest(spans, block, width).map(({ line }) => line));
}

/** The lines not printed yet, each with the number of characters displayed up to its end. */
function wrapRest(spans: readonly Span[], { lead, printed, isBegun }: TextBlock, width: number): Wrapped[] {
  const left = drop(spans, printed);
  // The line break after a printed line does not start a line of its own.
  const skip = isBegun && left[0]?.text.startsWith("\n") ? 1 : 0;
  const words = drop(left, skip);
  if (isBegun && words.length === 0) return [];
  const lines = wrap(words, width, isBegun ? { first: lead.rest, rest: lead.rest } : lead);
  return lines.map(({ line, end }) => ({ line, end: end + printed + skip }));
}

function tableLines(table: TableBlock, { width, links }: Options): Line[] {
  const widths = table.widths ?? columnWidths(table.rows, { width, links });
  const [head = "", rule = "", ...body] = table.rows;
  const begin = table.printed === 0 ? [...rowLines(head, rule, widths, links, true), headRule(widths)] : [];
  return [...begin, ...body.slice(Math.max(0, table.printed - 2)).flatMap((row) => rowLines(row, rule, widths, links, false))];
}

function append(state: State, text: string): State {
  return state.block?.kind === "text" ? { ...state, block: { ...state.block, source: `${state.block.source}${text}` } } : state;
}

function drop(spans: readonly Span[], count: number): Span[] {
  let left = count;
  return spans.flatMap((span) => {
    const gone = Math.min(left, span.text.length);
    left -= gone;
    return gone === span.text.length ? [] : [{ ...span, text: span.text.slice(gone) }];
  });
}

function copy(state: State): State {
  return { ...state, block: state.block && { ...state.block } };
}
