import { withoutEnd } from "../../lib/trim.ts";
import type { Line, Span, Style } from "../text/style.ts";
import { type Grammar, grammarOf } from "./languages.ts";

/** The state at the start of a code line: the delimiter that closes an open string or comment, or undefined in plain code. */
export type CodeState = string | undefined;

const COMMENT: Style = { dim: true };
const STRING: Style = { colour: "green" };
const KEYWORD: Style = { colour: "magenta" };
const NUMBER: Style = { colour: "yellow" };
const CALL: Style = { colour: "blue" };

/** Highlights one line of code, and returns the state for the next one. */
export function highlight(code: string, language: string, state: CodeState): { line: Line; state: CodeState } {
  const grammar = grammarOf(language);
  if (!grammar) return { line: [{ text: code }], state: undefined };
  if (grammar.isDiff) return { line: [{ text: code, ...diffStyle(code) }], state: undefined };
  const spans: Span[] = [];
  let open = state;
  let at = 0;
  const add = (text: string, style?: Style) => {
    if (text !== "") spans.push({ text, ...(style && { style }) });
    at += text.length;
  };
  while (at < code.length) {
    const rest = code.slice(at);
    if (open !== undefined) {
      const end = rest.indexOf(open);
      const style = grammar.blocks.find(({ close }) => close === open)?.isComment ? COMMENT : STRING;
      add(end < 0 ? rest : rest.slice(0, end + open.length), style);
      if (end >= 0) open = undefined;
      continue;
    }
    const block = grammar.blocks.find(({ begin }) => rest.startsWith(begin));
    if (block) {
      open = block.close;
      add(block.begin, block.isComment ? COMMENT : STRING);
      continue;
    }
    if (grammar.comment?.test(rest)) {
      add(rest, COMMENT);
      continue;
    }
    const [text, style] = token(rest, grammar);
    add(text, style);
  }
  return { line: spans, state: open };
}

function token(rest: string, { words, anyCase, isMarkup }: Grammar): [string, Style?] {
  const string = /^(?:"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?)/.exec(rest)?.[0];
  if (string) return [string, STRING];
  const number = /^\d[\w.]*/.exec(rest)?.[0];
  if (number) return [number, NUMBER];
  const tag = isMarkup ? /^<\/?[\w:-]+|^\/?>/.exec(rest)?.[0] : undefined;
  if (tag) return [tag, KEYWORD];
  const word = withoutEnd(/^[\p{L}_$@][\p{L}\p{N}_$-]*/u.exec(rest)?.[0] ?? "", "-");
  if (word) {
    if (words.has(anyCase ? word.toLowerCase() : word)) return [word, KEYWORD];
    return rest[word.length] === "(" ? [word, CALL] : [word];
  }
  return [/^\s+|^./su.exec(rest)?.[0] ?? rest];
}

function diffStyle(code: string): { style?: Style } {
  if (code.startsWith("+")) return { style: { colour: "green" } };
  if (code.startsWith("-")) return { style: { colour: "red" } };
  return code.startsWith("@@") ? { style: { colour: "cyan" } } : {};
}
