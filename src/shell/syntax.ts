/** A parsed shell text: its commands, with the operators and groups that decide how they run. */
export type Line = Part[];

export interface Part {
  /** The operator between it and the part before. */
  before: "&&" | "||" | ";";
  /** Whether a `!` inverts its exit code. */
  isTurned: boolean;
  inBackground: boolean;
  /** The commands of a pipeline, or the only command. */
  pipe: Command[];
}

export interface Command {
  words: Word[];
  redirects: readonly Redirect[];
  /** The commands in `( … )` or `{ … }`, which take the place of words. */
  group?: Line;
  /** Whether the group runs in a shell of its own, as in `( … )`. */
  isSubshell: boolean;
  /** The body of the function that it defines, which does not run yet. */
  defines?: Line;
  /** The commands that run first, because the words and inputs depend on them: `$( … )`, backticks, `<( … )`. */
  within: readonly Line[];
}

export interface Word {
  /** Without its quotes. Variables stay as they are written, and `$()` stands for the output of commands. */
  text: string;
  pieces: Piece[];
}

export type Piece =
  | { kind: "text"; text: string; isQuoted: boolean }
  | Variable
  /** The output of commands, or the commands of an inner `( … )`. */
  | { kind: "commands"; line: Line };

export interface Variable {
  kind: "variable";
  /** As it is written. */
  text: string;
  /** Empty for a variable without a plain name, such as `$1` or `${#x}`. */
  name: string;
  /** The operator after the name inside braces: `:-`, `%` and the like. */
  operator: string;
  operand?: Word;
}

export interface Redirect {
  /** The operator alone, without the number before it. */
  operator: string;
  target: Word;
  /** How many of the command's words precede it. */
  at: number;
  /** The lines of a here-document. */
  body: string;
}

/** Every command of a line, including nested ones, which precede the command that contains them. */
export function commandsIn(line: Line, found: Command[] = []): Command[] {
  for (const command of line.flatMap(({ pipe }) => pipe)) {
    for (const inner of [...command.within, command.group, command.defines]) if (inner) commandsIn(inner, found);
    found.push(command);
  }
  return found;
}

/** The input that a command gets by `<<` and `<<<`. */
export function inputOf({ redirects }: Command): string {
  return redirects.map(({ operator, target, body }) => (operator === "<<<" ? target.text : body)).join("");
}

export const isAssignment = (word: string) => /^[A-Za-z_]\w*\+?=/.test(word);
