import type { Block } from "./changed-lines.ts";

const STRINGS = /"(?:[^"\\]|\\.){0,500}"|'(?:[^'\\]|\\.){0,500}'|`(?:[^`\\]|\\.){0,500}`/g;
/** In Rust, a single quote may also start a lifetime. */
const STRINGS_OF_RUST = /"(?:[^"\\]|\\.){0,500}"|'(?:[^'\\]|\\.)'/g;
const HASH_COMMENTS = /\.(?:py|rb|exs?|sh|bash|bats|t|pl|r|ya?ml|toml)$/i;
/** Languages whose blocks end with a keyword. */
const KEYWORD_BLOCKS = /\.(?:rb|exs?|lua|cr|jl)$/;
const OPENS_BY_WORD =
  /^\s{0,200}(?:if|unless|case|while|until|for|begin|def|defp|class|module)\b(?!.{0,500}(?:\bend\s{0,5}$|,\s{0,5}do:))|\bdo(?:\s{0,5}\|[^|]{0,200}\|)?\s{0,5}$|\bfunction\s{0,5}\([^)]{0,200}\)\s{0,5}$/;
const ENDS_BY_WORD = /^\s{0,200}end\b/;
const PREPROCESSED = /\.(?:c|cc|cpp|cxx|h|hpp|m|mm|cs|swift)$/;
/** Groups tests without affecting whether they run. */
const GROUP =
  /^\s{0,200}(?:export\s{1,5})?(?:(?:RSpec\.)?(?:describe|context|suite|feature|group)\b|(?:(?:public|final|internal|sealed|static|@\w{1,40})\s{1,5}){0,4}(?:class|module|namespace|mod|object|struct|impl|extension|defmodule)\b)/;
/** Starts a test or another function body. */
const BEGINS =
  /\b(?:def|defp|func|function|fn|fun|class|it|test|specify|describe|context|suite|scenario|void|public|TEST\w{0,20}|(?:before|after)\w{0,10}|setup|teardown)\b|=>|@test\b|(?:[({]|\)|\bdo)\s{0,5}$/;
const CONTROL_FLOW = /^[\s}]{0,200}(?:if|unless|while|for|try|else|elif|elsif|switch|case|match|begin|with)\b/;

/** Whether added lines put existing lines into a block other than a test group. */
export function wrapsLines({ added, removed }: Pick<Block, "added" | "removed">, path: string): boolean {
  // A condition without braces applies to the next line.
  if (removed.length === 0 && /^\s{0,200}(?:if|while|for)\b.{0,500}\)\s{0,5}$/.test(added.at(-1) ?? "")) return true;
  const opened = unclosed(added, path);
  const before = unclosed(removed, path).length;
  if (splitsString(added, path) !== splitsString(removed, path)) return true;
  return opened.length > before && opened.some((line) => !GROUP.test(line));
}

/** Whether a line is inside a function added with it, and so cannot end an existing test. */
export function isInNewCode({ added }: Pick<Block, "added">, index: number): boolean {
  const indent = indentOf(added[index] ?? "");
  return added.slice(0, index).some((line) => indentOf(line) < indent && BEGINS.test(line) && !CONTROL_FLOW.test(line));
}

const indentOf = (line: string) => /^\s{0,200}/.exec(line)?.[0].length ?? 0;

/** The lines that open a block that stays open. A line that opens two is listed twice. */
function unclosed(lines: readonly string[], path: string): string[] {
  const open: string[] = [];
  for (const line of lines) {
    for (const step of stepsOf(line, path)) {
      if (step > 0) open.push(line);
      else open.pop();
    }
  }
  return open;
}

function stepsOf(line: string, path: string): number[] {
  if (/^=begin\b/.test(line)) return [1];
  if (/^=end\b/.test(line)) return [-1];
  if (PREPROCESSED.test(path) && /^\s{0,200}#\s{0,5}(?:if|ifdef|ifndef)\b/.test(line)) return [1];
  if (PREPROCESSED.test(path) && /^\s{0,200}#\s{0,5}endif\b/.test(line)) return [-1];
  const plain = line.replace(path.endsWith(".rs") ? STRINGS_OF_RUST : STRINGS, "");
  const comment = plain.search(HASH_COMMENTS.test(path) ? /(?:^|\s)#/ : /\/\//);
  const code = comment < 0 ? plain : plain.slice(0, comment);
  const brackets = HASH_COMMENTS.test(path) ? /[{([\])}]/g : /\/\*|\*\/|[{([\])}]/g;
  const steps = [...code.matchAll(brackets)].map(([found]) => (found === "/*" || "{([".includes(found) ? 1 : -1));
  if (!KEYWORD_BLOCKS.test(path)) return steps;
  return [...steps, ...(OPENS_BY_WORD.test(code) ? [1] : []), ...(ENDS_BY_WORD.test(code) ? [-1] : [])];
}

/** Whether a multi-line string starts or ends in these lines, but not both. */
function splitsString(lines: readonly string[], path: string): boolean {
  const mark = path.endsWith(".py") ? /"""|'''/g : /\.[cm]?[jt]sx?$/.test(path) ? /(?<!\\)`/g : undefined;
  return mark !== undefined && lines.reduce((sum, line) => sum + (line.match(mark)?.length ?? 0), 0) % 2 === 1;
}
