import { MAX_DEPTH, type Reading, take, takeUntil } from "./reading.ts";
import type { Line, Piece, Variable, Word } from "./syntax.ts";

/** Where a word ends: before a space or an operator, at the brace or bracket that closes an expansion, or with the text. */
type Ending = "space" | "brace" | "quoted brace" | "bracket" | "text";
type Mode = Ending | "quote";

const PLAIN: Readonly<Record<Mode, RegExp>> = {
  space: /[^\s;&|()<>\\"'`$]+/y,
  brace: /[^}\\"'`$]+/y,
  "quoted brace": /[^}\\"`$]+/y,
  quote: /[^\\"`$]+/y,
  bracket: /[^\]\\"`$]+/y,
  text: /[^\\`$]+/y,
};
const isInQuotes = (mode: Mode) => mode !== "space" && mode !== "brace";
const NAME = /[A-Za-z_]\w*/y;
const SPECIAL = /[\d@*#?$!-]/y;
const OPERATOR = /:?[-=?+]|%%?|##?|\^\^?|,,?|\/\/?|[:@]/y;

/** Reads one word. The commands whose output it contains are added to the reading's substitutions. */
export function readWord(reading: Reading, ending: Ending = "space"): Word {
  const word: Word = { text: "", pieces: [] };
  const { text } = reading;
  let inQuotes = false;
  while (reading.at < text.length && !reading.isCut) {
    const sign = text[reading.at]!;
    const mode = inQuotes ? "quote" : ending;
    const plain = take(reading, PLAIN[mode]);
    if (plain !== "") addText(word, plain, isInQuotes(mode));
    else if (sign === "\\") addText(word, readEscape(reading, mode), true);
    else if (sign === '"') {
      inQuotes = !inQuotes;
      reading.at += 1;
      addText(word, "", true);
    } else if (sign === "'") {
      reading.at += 1;
      addText(word, takeUntil(reading, "'"), true);
    } else if (sign === "$") readDollar(reading, word, mode);
    else if (sign === "`") addCommands(reading, word, readBackticks(reading));
    else {
      if (ending !== "space") reading.at += 1;
      break;
    }
  }
  return word;
}

function addText(word: Word, text: string, isQuoted: boolean): void {
  const last = word.pieces.at(-1);
  word.text += text;
  if (last?.kind === "text" && last.isQuoted === isQuoted) last.text += text;
  else word.pieces.push({ kind: "text", text, isQuoted });
}

/** Adds the output of commands to a word. */
export function addCommands(reading: Reading, word: Word, line: Line): void {
  reading.substitutions.push(line);
  word.text += "$()";
  word.pieces.push({ kind: "commands", line } satisfies Piece);
}

function readEscape(reading: Reading, mode: Mode): string {
  if (take(reading, /\\\n/y)) return "";
  const next = reading.text[reading.at + 1] ?? "";
  reading.at += 2;
  return !isInQuotes(mode) || /[$`"\\]/.test(next) ? next : `\\${next}`;
}

function readDollar(reading: Reading, word: Word, mode: Mode): void {
  const start = reading.at;
  if (take(reading, /\$\(/y)) {
    addCommands(reading, word, reading.inner(")"));
    return;
  }
  if (!isInQuotes(mode) && take(reading, /\$'/y)) {
    addText(word, readAnsiQuoted(reading), true);
    return;
  }
  if (!isInQuotes(mode) && take(reading, /\$(?=")/y)) return;
  if (reading.depth < MAX_DEPTH && take(reading, /\$\[/y)) {
    // The old syntax for arithmetic, in which single quotes do not quote.
    reading.depth += 1;
    const { pieces } = readWord(reading, "bracket");
    reading.depth -= 1;
    word.text += "$()";
    word.pieces.push({ kind: "commands", line: [] }, ...pieces.filter(({ kind }) => kind === "commands"));
    return;
  }
  const variable = readNamed(reading) ?? readBraced(reading, isInQuotes(mode) ? "quoted brace" : "brace");
  if (variable === undefined) {
    reading.at += 1;
    addText(word, "$", isInQuotes(mode));
    return;
  }
  const spelled = reading.text.slice(start, reading.at);
  word.text += spelled;
  word.pieces.push({ kind: "variable", text: spelled, ...variable });
}

type Held = Omit<Variable, "kind" | "text">;

/** Reads `$name`, or a special variable such as `$1`. */
function readNamed(reading: Reading): Held | undefined {
  reading.at += 1;
  const name = take(reading, NAME);
  if (name !== "" || take(reading, SPECIAL) !== "") return { name, operator: "" };
  reading.at -= 1;
  return undefined;
}

/** Reads `${ … }`; undefined if no closing brace follows. */
function readBraced(reading: Reading, ending: Ending): Held | undefined {
  if (reading.depth >= MAX_DEPTH || reading.lastBrace < reading.at || !take(reading, /\$\{/y)) return undefined;
  const name = take(reading, NAME);
  const operator = take(reading, OPERATOR);
  reading.depth += 1;
  const operand = readWord(reading, ending);
  reading.depth -= 1;
  // `${x[0]}` and the like begin with a name, but are not the value of that variable.
  if (operator === "" && operand.text !== "") return { name: "", operator, operand };
  return { name, operator, operand };
}

/** Reads the commands in backticks separately, without the backslashes that hide inner marks from the outer shell. */
function readBackticks(reading: Reading): Line {
  const { text } = reading;
  const start = reading.at + 1;
  let end = start;
  while (end < text.length && text[end] !== "`") end += text[end] === "\\" ? 2 : 1;
  reading.at = end + 1;
  return reading.apart(text.slice(start, end).replace(/\\([`\\$])/g, "$1"));
}

const ESCAPES: Readonly<Record<string, string>> = { n: "\n", t: "\t", r: "\r", a: "\x07", b: "\b", e: "\x1b", f: "\f", v: "\v" };

/** Reads the rest of `$'…'`, in which escape sequences stand for characters. */
function readAnsiQuoted(reading: Reading): string {
  const { text } = reading;
  const start = reading.at;
  let end = start;
  while (end < text.length && text[end] !== "'") end += text[end] === "\\" ? 2 : 1;
  reading.at = end + 1;
  return text
    .slice(start, end)
    .replace(/\\(?:x([\da-fA-F]{1,2})|u([\da-fA-F]{1,4})|([0-7]{1,3})|([\s\S]))/g, (_, hex, wide, octal, sign) => {
      if (sign !== undefined) return ESCAPES[sign] ?? sign;
      return String.fromCharCode(octal === undefined ? Number.parseInt(hex ?? wide, 16) : Number.parseInt(octal, 8));
    });
}
