import { type Budget, type Closer, MAX_DEPTH, type Reading, take, takeUntil } from "./reading.ts";
import type { Command, Line, Part, Redirect } from "./syntax.ts";
import { addCommands, readWord } from "./words.ts";

const NONE: readonly never[] = [];
const BRACE = /\s*\{(?=\s)/y;
const OPERATOR = /&&|\|\||;+|\n|&/y;
const REDIRECT = /(?:\d*|\{[A-Za-z_]\w*\})(?:<<<|<<-?|<>|<&|<|>>|>&|>\||>)|&>>?/y;
const PIPE = /\|(?!\|)&?\s*/y;
const KEYWORD = /(?:if|then|elif|else|while|until|do|coproc)(?=\s)|time(?=\s+[({])|!(?=[\s(])/y;
const GAP = /(?:[^\S\n]|\\\n)*(?:(?<![^\s;&|()])#[^\n]*)?/y;
// The first characters of the patterns above. A megabyte of text is read fast enough only if most patterns are not even tried.
const MAY_OPERATE = /[&|;\n]/;
const MAY_REDIRECT = /[\d&<>{]/;
const MAY_BE_KEYWORD = /[itewudc!]/;
const MAY_BE_GAP = /[\s\\#]/;

/**
 * Parses a text as a shell would, in linear time. It never fails: an unclosed quote ends with the text, and commands beyond the
 * depth limit are read as further commands of the deepest level.
 */
export function readShell(text: string, budget: Budget = { left: Number.POSITIVE_INFINITY }): Line {
  return readLine(open(text, 0, budget), "");
}

function open(text: string, depth: number, budget: Budget): Reading {
  const reading: Reading = {
    text,
    at: 0,
    depth,
    flattened: 0,
    isCut: false,
    inArithmetic: false,
    awaited: [],
    substitutions: [],
    budget,
    lastBrace: text.lastIndexOf("}"),
    inner: (closer) => readInner(reading, closer),
    apart: (other) => readLine(open(other, reading.depth + 1, budget), ""),
  };
  return reading;
}

function readInner(reading: Reading, closer: Closer): Line {
  if (reading.depth >= MAX_DEPTH) {
    if (closer === ")") reading.flattened += 1;
    reading.isCut = true;
    return [];
  }
  const { inArithmetic } = reading;
  reading.inArithmetic ||= closer === ")" && reading.text[reading.at] === "(";
  reading.depth += 1;
  const line = readLine(reading, closer);
  reading.depth -= 1;
  reading.inArithmetic = inArithmetic;
  return line;
}

function readLine(reading: Reading, closer: Closer): Line {
  const { text } = reading;
  const parts: Line = [];
  let before: Part["before"] = ";";
  let wasCut = false;
  for (skipGap(reading); reading.at < text.length; skipGap(reading)) {
    const sign = text[reading.at]!;
    const operator = MAY_OPERATE.test(sign) ? take(reading, OPERATOR) : "";
    if (operator === "\n") takeBodies(reading);
    else if (operator === "&&" || operator === "||") before = operator;
    else if (operator !== "") {
      const last = parts.at(-1);
      if (last && operator === "&") last.inBackground = true;
      before = ";";
    } else if (sign === ")" && reading.flattened > 0) {
      reading.flattened -= 1;
      reading.at += 1;
    } else if (sign === closer) break;
    else if (sign === ")") reading.at += 1;
    else {
      // The exit code of flattened commands is not known.
      const part = readPipeline(reading, wasCut ? "||" : before);
      if (!reading.isCut || part.pipe.some(({ words }) => words.length > 1)) parts.push(part);
      wasCut ||= reading.isCut;
      reading.isCut = false;
      before = ";";
    }
  }
  reading.at += 1;
  return parts;
}

function readPipeline(reading: Reading, before: Part["before"]): Part {
  const pipe: Command[] = [];
  let isTurned = false;
  do {
    for (skipGap(reading); MAY_BE_KEYWORD.test(signAt(reading)) && take(reading, KEYWORD); skipGap(reading))
      if (reading.text[reading.at - 1] === "!") isTurned = !isTurned;
    pipe.push(readCommand(reading));
  } while (!reading.isCut && signAt(reading) === "|" && take(reading, PIPE) !== "");
  return { before, isTurned, inBackground: false, pipe };
}

function readCommand(reading: Reading): Command {
  const { text, substitutions } = reading;
  const start = signAt(reading);
  const outer = substitutions.length;
  spend(reading);
  const command: Command = { words: [], redirects: NONE, within: NONE, isSubshell: start === "(" };
  if (start === "(") {
    reading.at += 1;
    command.group = reading.inner(")");
  } else if (start === "{" && take(reading, BRACE)) command.group = reading.inner("}");
  for (skipGap(reading); reading.at < text.length && !reading.isCut; skipGap(reading)) {
    spend(reading);
    const sign = text[reading.at] ?? ")";
    const arrow = MAY_REDIRECT.test(sign) ? take(reading, REDIRECT) : "";
    if (arrow !== "") readRedirect(reading, command, arrow.replace(/^[^<>]+/, ""));
    else if (isDefinition(command) && take(reading, BRACE)) command.defines = reading.inner("}");
    else if (sign === ")" || MAY_OPERATE.test(sign)) break;
    else if (sign === "(") {
      reading.at += 1;
      const word = { text: "", pieces: [] };
      addCommands(reading, word, reading.inner(")"));
      command.words.push(word);
    } else command.words.push(readWord(reading));
  }
  if (substitutions.length > outer) command.within = [...substitutions.splice(outer), ...command.within];
  return command;
}

/** Whether `name()` or `function name` was read, so that a body follows. */
function isDefinition({ words, defines }: Command): boolean {
  if (words.length < 2 || words.length > 3 || defines) return false;
  const [piece] = words[1]!.pieces;
  return words[0]!.text === "function" || (piece?.kind === "commands" && piece.line.length === 0);
}

function readRedirect(reading: Reading, command: Command, operator: string): void {
  skipGap(reading);
  // In `<(…)` and `>(…)` the target is a list of commands, which the caller reads next.
  if (signAt(reading) === "(") return;
  const redirect: Redirect = { operator, target: readWord(reading), at: command.words.length, body: "" };
  if (command.redirects === NONE) command.redirects = [redirect];
  else (command.redirects as Redirect[]).push(redirect);
  if (!/^<<-?$/.test(operator) || reading.inArithmetic) return;
  const { text: end, pieces } = redirect.target;
  const isPlain = pieces.some((piece) => piece.kind === "text" && piece.isQuoted);
  reading.awaited.push({ command, redirect, end, isIndented: operator === "<<-", isPlain });
}

/** Reads the bodies of here-documents, which are in the lines that follow. */
function takeBodies(reading: Reading): void {
  for (const { command, redirect, end, isIndented, isPlain } of reading.awaited.splice(0)) {
    const lines: string[] = [];
    while (reading.at < reading.text.length) {
      const line = takeUntil(reading, "\n");
      const spelled = line.replace(/\r$/, "");
      if ((isIndented ? spelled.replace(/^\t+/, "") : spelled) === end) break;
      lines.push(`${line}\n`);
    }
    redirect.body = lines.join("");
    // Each nested script contains all the lines that follow, so they count against the budget too.
    reading.budget.left -= Math.floor(redirect.body.length / 60);
    if (!isPlain) command.within = [...command.within, ...substitutionsIn(redirect.body, reading.depth + 1, reading.budget)];
  }
}

function substitutionsIn(text: string, depth: number, budget: Budget): readonly Line[] {
  const reading = open(text, depth, budget);
  readWord(reading, "text");
  return reading.substitutions;
}

/** Counts a word or a command. Once the budget is used up, the rest of the text is skipped. */
function spend(reading: Reading): void {
  reading.budget.left -= 1;
  if (reading.budget.left < 0) reading.at = reading.text.length;
}

function skipGap(reading: Reading): void {
  if (MAY_BE_GAP.test(signAt(reading))) take(reading, GAP);
}

function signAt({ text, at }: Reading): string {
  return text[at] ?? "";
}
