import { withoutEnd } from "../../lib/trim.ts";
import type { Span, Style } from "../text/style.ts";
import { linkSpans } from "./links.ts";

export interface Inline {
  spans: Span[];
  /** How many of the displayed characters cannot change any more, whatever follows. */
  stable: number;
  /** The stretches of text outside of all marks, with their positions in the display and in the source. */
  bare: { shown: number; source: number; length: number }[];
}

/** A mark that is not closed within this many characters is literal text. */
const WINDOW = 4_000;

export interface InlineOptions {
  /** More text may follow, so an unclosed mark is assumed to be closed later. */
  isOpen: boolean;
  links: boolean;
}

const ESCAPED = /^\\([!-/:-@[-`{-~])/;
const CODE = /^`+/;
const MARK = /^(\*{1,3}|_{1,3}|~~)/;
const LINK = /^!?\[((?:[^[\]\\]|\\.|\[[^\]]*\])*)\]\(\s*<?([^\s()<>]*(?:\([^\s()]*\)[^\s()<>]*)*)>?(?:\s+["'(][^)]*)?\)/;
/** A longer link is shown as plain text. */
const MOST_LINK = 2_000;
/** Matches an incomplete link. */
const HALF_LINK = /^!?\[((?:[^[\]\\]|\\.)*)(?:\](?:\([^)]*)?)?$/;
const ADDRESS = /^(?:<((?:https?:\/\/|mailto:)[^\s<>]+)>|(https?:\/\/[^\s<>"')\]]*[^\s<>"')\].,;:!?*_~`]))/;

const STYLES: Record<string, Style> = {
  "*": { italic: true },
  _: { italic: true },
  "**": { bold: true },
  __: { bold: true },
  "***": { bold: true, italic: true },
  ___: { bold: true, italic: true },
  "~~": { strike: true },
};

/** Parses a paragraph's inline Markdown into styled spans. */
export function parseInline(text: string, options: InlineOptions, style: Style = {}): Inline {
  const spans: Span[] = [];
  let shown = 0;
  let stable = Number.POSITIVE_INFINITY;
  let literal = "";
  let literalAt = 0;
  const bare: Inline["bare"] = [];
  const add = (...more: Span[]) => {
    for (const span of more) {
      shown += span.text.length;
      spans.push(Object.keys(span.style ?? {}).length > 0 ? span : { text: span.text });
    }
  };
  const flush = () => {
    if (literal !== "") {
      if (literalAt >= 0) bare.push({ shown, source: literalAt, length: literal.length });
      add({ text: literal, style });
    }
    literal = "";
  };
  const unsure = () => {
    flush();
    stable = Math.min(stable, shown);
  };
  let at = 0;
  while (at < text.length) {
    const rest = text.slice(at, at + WINDOW);
    const isOpen = options.isOpen && at + WINDOW >= text.length;
    const before = text[at - 1] ?? " ";
    const special = nextSpecial(rest);
    if (literal === "") literalAt = at;
    if (special > 0) {
      literal += rest.slice(0, special);
      at += special;
      continue;
    }
    const escaped = ESCAPED.exec(rest);
    if (escaped) {
      flush();
      literal = escaped[1]!;
      literalAt = -1;
      flush();
      at += 2;
      continue;
    }
    const code = CODE.exec(rest)?.[0];
    if (code) {
      const end = closingTicks(rest, code);
      if (end < 0 && !isOpen) {
        literal += code;
        at += code.length;
        continue;
      }
      if (end < 0) unsure();
      flush();
      const inner = rest.slice(code.length, end < 0 ? undefined : end).replace(/\n/g, " ");
      const isPadded = inner.startsWith(" ") && inner.endsWith(" ") && inner.trim() !== "";
      const words = isPadded ? inner.slice(1, -1) : end < 0 ? withoutEnd(inner, "`") : inner;
      add({ text: words, style: { ...style, colour: "cyan" } });
      at = end < 0 ? text.length : at + end + code.length;
      continue;
    }
    const link = LINK.exec(rest.slice(0, MOST_LINK));
    if (link) {
      flush();
      const label = parseInline(link[1] ?? "", { ...options, isOpen: false }, style).spans;
      add(...linkSpans(label, link[2] ?? "", { links: options.links, style }));
      at += link[0].length;
      continue;
    }
    const half = isOpen ? HALF_LINK.exec(rest) : null;
    if (half) {
      unsure();
      add(...parseInline(half[1] ?? "", { ...options, isOpen }, style).spans);
      break;
    }
    const address = /\w/.test(before) ? null : ADDRESS.exec(rest);
    if (address) {
      if (isOpen && address[0].length === rest.length) unsure();
      flush();
      const url = address[1] ?? address[2] ?? "";
      add(...linkSpans([{ text: url, style }], url, { links: options.links, style }));
      at += address[0].length;
      continue;
    }
    const mark = MARK.exec(rest)?.[0];
    if (mark && opens(mark, before, rest[mark.length])) {
      const end = closing(rest, mark);
      if (end >= 0 || isOpen) {
        if (end < 0) unsure();
        flush();
        const inner = rest.slice(mark.length, end < 0 ? undefined : end);
        const body = end < 0 ? withoutLooseEnd(inner, mark) : inner;
        const parsed = parseInline(body, { ...options, isOpen: end < 0 && isOpen }, { ...style, ...STYLES[mark] });
        add(...parsed.spans);
        at = end < 0 ? text.length : at + end + mark.length;
        continue;
      }
    }
    if (mark && isOpen && mark.length === rest.length) {
      unsure();
      break;
    }
    literal += mark ?? rest[0];
    at += mark?.length ?? 1;
  }
  flush();
  return { spans, stable: Math.min(stable, shown), bare };
}

function nextSpecial(rest: string): number {
  const found = rest.search(/[\\`*_~[!<]|https?:/);
  return found < 0 ? rest.length : found;
}

function closingTicks(rest: string, ticks: string): number {
  for (const match of rest.slice(ticks.length).matchAll(/`+/g)) {
    if (match[0].length === ticks.length) return match.index + ticks.length;
  }
  return -1;
}

/** Whether a mark opens here: it must precede a word, and an underscore must not be inside one. */
function opens(mark: string, before: string, after: string | undefined): boolean {
  if (after === undefined || /\s/.test(after)) return false;
  return mark[0] === "_" ? !/[\p{L}\p{N}_]/u.test(before) : true;
}

/** Finds where the mark is closed after a word, ignoring inline code. */
function closing(rest: string, mark: string): number {
  const sign = mark[0]!;
  let at = mark.length;
  while (at < rest.length) {
    if (rest[at] === "\\") at += 2;
    else if (rest[at] === "`") {
      const ticks = CODE.exec(rest.slice(at))![0];
      const end = closingTicks(rest.slice(at), ticks);
      at += end < 0 ? ticks.length : end + ticks.length;
    } else if (rest[at] === sign) {
      let run = 1;
      while (rest[at + run] === sign) run += 1;
      const isAfterWord = !/\s/.test(rest[at - 1] ?? " ") && at > mark.length;
      const isEnd = sign !== "_" || !/[\p{L}\p{N}]/u.test(rest[at + run] ?? " ");
      if (isAfterWord && isEnd && (run === mark.length || (run === 3 && mark.length < 3))) return at + run - mark.length;
      at += run;
    } else at += 1;
  }
  return -1;
}

/** Hides the first part of a closing mark that is still arriving. */
function withoutLooseEnd(inner: string, mark: string): string {
  const sign = mark[0]!;
  let end = inner.length;
  while (end > 0 && inner[end - 1] === sign) end -= 1;
  return inner.slice(0, end);
}
