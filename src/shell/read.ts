import { type Closer, MAX_DEPTH, type Reading, take, takeUntil } from "./reading.ts";
import type { Command, Line, Part, Redirect } from "./syntax.ts";
import { addCommands, readWord } from "./words.ts";

const OPERATOR = /&&|\|\||;+|\n|&/y;
const REDIRECT = /(?:\d*|&)(<<<|<<-?|<>|<&|<|>>|>&|>\||>)/y;
const KEYWORD = /(?:if|then|elif|else|while|until|do)(?=\s)|!(?=[\s(])/y;
const GAP = /(?:[^\S\n]|\\\r?\n)*(?:(?<![^\s;&|()])#[^\n]*)?/y;

/**
 * Reads a text as a shell would, in a time that grows with its length alone. It never fails: a quote that nobody closes
 * ends with the text, and beyond the depth limit the commands are read as further ones of the deepest level.
 */
export function readShell(text: string): Line {
  return readLine(open(text, 0), "");
}

function open(text: string, depth: number): Reading {
  const reading: Reading = {
    text,
    at: 0,
    depth,
    flattened: 0,
    isCut: false,
    inArithmetic: false,
    awaited: [],
    lastBrace: text.lastIndexOf("}"),
    inner: (closer) => readInner(reading, closer),
    apart: (other) => readLine(open(other, reading.depth + 1), ""),
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
    const operator = take(reading, OPERATOR)?.[0];
    if (operator === "\n") takeBodies(reading);
    else if (operator === "&&" || operator === "||") before = operator;
    else if (operator !== undefined) {
      const last = parts.at(-1);
      if (last && operator === "&") last.inBackground = true;
      before = ";";
    } else if (text[reading.at] === ")" && reading.flattened > 0) {
      reading.flattened -= 1;
      reading.at += 1;
    } else if (text[reading.at] === closer) break;
    else if (text[reading.at] === ")") reading.at += 1;
    else {
      const pipeline = readPipeline(reading);
      // Of what is read flat nobody can tell the exit code.
      parts.push({ before: wasCut ? "||" : before, inBackground: false, ...pipeline });
      wasCut ||= reading.isCut;
      reading.isCut = false;
      before = ";";
    }
  }
  reading.at += 1;
  return parts;
}

function readPipeline(reading: Reading): Pick<Part, "isTurned" | "pipe"> {
  const pipe: Command[] = [];
  let isTurned = false;
  do {
    for (skipGap(reading); take(reading, KEYWORD); skipGap(reading))
      if (reading.text[reading.at - 1] === "!") isTurned = !isTurned;
    pipe.push(readCommand(reading));
  } while (!reading.isCut && take(reading, /\|(?!\|)&?\s*/y));
  return { isTurned, pipe };
}

function readCommand(reading: Reading): Command {
  const { text } = reading;
  const command: Command = { words: [], redirects: [], within: [], isSubshell: text[reading.at] === "(" };
  if (take(reading, /\(/y)) command.group = reading.inner(")");
  else if (take(reading, /\{(?=\s)/y)) command.group = reading.inner("}");
  for (skipGap(reading); reading.at < text.length && !reading.isCut; skipGap(reading)) {
    const operator = take(reading, REDIRECT)?.[1];
    if (operator !== undefined) readRedirect(reading, command, operator);
    else if (isDefinition(command) && take(reading, /\s*\{(?=\s)/y)) command.defines = reading.inner("}");
    else if (/[\n;&|)]/.test(text[reading.at]!)) break;
    else if (take(reading, /\(/y)) {
      const word = { text: "", pieces: [] };
      addCommands(word, command.within, reading.inner(")"));
      command.words.push(word);
    } else command.words.push(readWord(reading, command.within));
  }
  return command;
}

/** Whether `name()` or `function name` has been read, so that a body follows. */
function isDefinition({ words, within }: Command): boolean {
  if (words.length < 2 || words.length > 3) return false;
  return words[0]!.text === "function" || (words[1]!.text === "$()" && within.length === 1 && within[0]!.length === 0);
}

function readRedirect(reading: Reading, command: Command, operator: string): void {
  skipGap(reading);
  // An arrow before a bracket makes a file of what the commands inside say.
  if (reading.text[reading.at] === "(") return;
  const { words, within, redirects } = command;
  const redirect: Redirect = { operator, target: readWord(reading, within), at: words.length, body: "" };
  redirects.push(redirect);
  if (!/^<<-?$/.test(operator) || reading.inArithmetic) return;
  const { text: end, pieces } = redirect.target;
  const isPlain = pieces.some((piece) => piece.kind === "text" && piece.isQuoted);
  reading.awaited.push({ redirect, within, end, isIndented: operator === "<<-", isPlain });
}

/** What `<<` brings stands in the lines that follow. */
function takeBodies(reading: Reading): void {
  for (const { redirect, within, end, isIndented, isPlain } of reading.awaited.splice(0)) {
    const lines: string[] = [];
    while (reading.at < reading.text.length) {
      const line = takeUntil(reading, "\n");
      const spelled = line.replace(/\r$/, "");
      if ((isIndented ? spelled.replace(/^\t+/, "") : spelled) === end) break;
      lines.push(`${line}\n`);
    }
    redirect.body = lines.join("");
    if (!isPlain) readWord(open(redirect.body, reading.depth + 1), within, "text");
  }
}

function skipGap(reading: Reading): void {
  take(reading, GAP);
}
