/** A text for a shell: its commands, with everything between and around them that decides what they do. */
export type Line = Part[];

export interface Part {
  /** What stands between it and the part before. */
  before: "&&" | "||" | ";";
  /** Whether a `!` turns its exit code round. */
  isTurned: boolean;
  inBackground: boolean;
  /** The commands of a pipe, or the only one. */
  pipe: Command[];
}

export interface Command {
  words: Word[];
  redirects: readonly Redirect[];
  /** What stands in `( … )` or `{ … }`, in place of words. */
  group?: Line;
  /** Whether the group has a shell of its own, as in `( … )`. */
  isSubshell: boolean;
  /** The body of the function that it defines, which does not run yet. */
  defines?: Line;
  /** Everything that runs so that its words and inputs are known: `$( … )`, backticks, `<( … )`. */
  within: readonly Line[];
}

export interface Word {
  /** Without its quotes; a variable as it is spelled, and `$()` for what a command prints. */
  text: string;
  pieces: Piece[];
}

export type Piece =
  | { kind: "text"; text: string; isQuoted: boolean }
  | Variable
  /** What commands print, or the commands of an inner `( … )`. */
  | { kind: "commands"; line: Line };

export interface Variable {
  kind: "variable";
  /** As it is spelled. */
  text: string;
  /** Empty when it is none that has a plain name, such as `$1` or `${#x}`. */
  name: string;
  /** What follows the name inside braces: `:-`, `%` and the like. */
  operator: string;
  operand?: Word;
}

export interface Redirect {
  /** The arrow alone, without the number in front of it. */
  operator: string;
  target: Word;
  /** How many of the command's words stand before it. */
  at: number;
  /** The lines that `<<` brings. */
  body: string;
}

/** Every command of a line, also those inside others, each after those it needs first. */
export function commandsIn(line: Line, found: Command[] = []): Command[] {
  for (const command of line.flatMap(({ pipe }) => pipe)) {
    for (const inner of [...command.within, command.group, command.defines]) if (inner) commandsIn(inner, found);
    found.push(command);
  }
  return found;
}

/** What a command is given to read by `<<` and `<<<`. */
export function inputOf({ redirects }: Command): string {
  return redirects.map(({ operator, target, body }) => (operator === "<<<" ? target.text : body)).join("");
}

export const isAssignment = (word: string) => /^[A-Za-z_]\w*\+?=/.test(word);
