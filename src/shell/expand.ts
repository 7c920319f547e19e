import { commandsIn, isAssignment, type Line, type Variable, type Word } from "./syntax.ts";
import type { KnownWord } from "./wrappers.ts";

/** The environment that a command runs in. */
export interface Surroundings {
  home: string;
  env: NodeJS.ProcessEnv;
  /** The variables that the commands themselves set, so that their values are not known. */
  assigned: ReadonlySet<string>;
}

/** Commands that set the variables named in their arguments. */
const SETTERS = new Set("export local declare typeset readonly read for select mapfile readarray getopts printf".split(" "));

/** The value of a word, with `~` and variables replaced; undefined if it is known only at run time. */
export function expand({ pieces }: Word, here: string | undefined, around: Surroundings): KnownWord {
  let known = "";
  for (const [index, piece] of pieces.entries()) {
    let value: KnownWord;
    if (piece.kind === "commands") value = isPwd(piece.line) ? here : undefined;
    else if (piece.kind === "variable") value = heldBy(piece, here, around);
    else if (index > 0 || piece.isQuoted) value = piece.text;
    else value = pieces.length === 1 || piece.text.length > 1 ? piece.text.replace(/^~(?=\/|$)/, () => around.home) : piece.text;
    if (value === undefined) return undefined;
    known += value;
  }
  return known;
}

function isPwd(line: Line): boolean {
  return line.length === 1 && line[0]!.pipe.length === 1 && line[0]!.pipe[0]!.words[0]?.text === "pwd";
}

/** The value of a variable, also with an operator such as `:-` or `:?` after its name; undefined if it is not known. */
function heldBy({ name, operator, operand }: Variable, here: string | undefined, around: Surroundings): KnownWord {
  if (name === "" || around.assigned.has(name)) return undefined;
  const value = name === "HOME" ? around.home : name === "PWD" ? here : around.env[name];
  if (name === "PWD" && value === undefined) return undefined;
  if (operator === "") return value ?? "";
  if (operator === "%" && operand?.text === "/") return value?.replace(/\/$/, "") ?? "";
  if (!/^:?[-=?]$/.test(operator)) return undefined;
  if (value) return value;
  return operator.endsWith("?") || operand === undefined ? undefined : expand(operand, here, around);
}

/** The names of the variables that a line sets. */
export function assignedIn(line: Line): Set<string> {
  return new Set(commandsIn(line).flatMap(({ words }) => namesSet(words.map(({ text }) => text))));
}

function namesSet(words: readonly string[]): string[] {
  const program = words.find((word) => !isAssignment(word)) ?? "";
  const spelled = SETTERS.has(program) ? words.slice(words.indexOf(program) + 1) : words.filter(isAssignment);
  return spelled.flatMap((word) => /^[A-Za-z_]\w*/.exec(word)?.[0] ?? []);
}
