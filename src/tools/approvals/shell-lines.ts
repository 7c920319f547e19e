import { exactly } from "../../lib/glob.ts";
import { readShell } from "../../shell/read.ts";
import { type Command, commandsIn, isAssignment, type Redirect } from "../../shell/syntax.ts";

/** A command line as rules see it. */
export interface ShellLine {
  /** All of it, as it was given. */
  whole: string;
  /** Each simple command in it, also those inside others. */
  commands: SimpleCommand[];
  /** Whether the simple commands tell everything: no substitution, no group, no redirection that writes or reads a file. */
  isPlain: boolean;
}

/** One program with its arguments: its words, with one space between them. */
export interface SimpleCommand {
  text: string;
  /** The same without assignments in front. */
  program: string;
}

/** What the shell does not take for a space, though it looks like one, and what nobody sees. */
const TREACHEROUS = /[^\P{C}\n\t]|[^\S \n\t]/u;

export function readShellLine(command: string): ShellLine {
  const whole = command.trim();
  const found = commandsIn(readShell(whole));
  const commands = found.flatMap((each) => (each.words.length === 0 ? [] : [simple(each)]));
  return { whole, commands, isPlain: commands.length > 0 && !TREACHEROUS.test(whole) && found.every(isPlain) };
}

function simple({ words }: Command): SimpleCommand {
  const texts = words.map(({ text }) => text);
  const start = texts.findIndex((text) => !isAssignment(text));
  return { text: texts.join(" "), program: texts.slice(Math.max(0, start)).join(" ") };
}

function isPlain({ words, redirects, within, group, defines }: Command): boolean {
  return (
    within.length === 0 &&
    group === undefined &&
    defines === undefined &&
    redirects.every(isHarmless) &&
    words.every(({ pieces }) => pieces.every(({ kind }) => kind === "text")) &&
    !/\s/.test(words[0]?.text ?? " ")
  );
}

/** Joins two streams, or has nothing at its end. */
function isHarmless({ operator, target: { text } }: Redirect): boolean {
  return (operator === ">&" && /^[12]$/.test(text)) || ((operator === ">" || operator === "<") && text === "/dev/null");
}

/** Commands that do no more with other arguments than without. */
const SAFE =
  /^(?:(?:npm|pnpm|yarn) test|(?:npm|pnpm|yarn) run (?:test|lint|build|check|typecheck)|go (?:test|vet|build)|cargo (?:test|check|build|clippy)|pytest|npx (?:vitest run|tsc|jest)|make (?:test|check|build|lint))(?= )/;

/** The pattern that a wider decision on this line would keep: its first words where they say it all, else the line itself. */
export function patternFor({ whole, commands, isPlain: plain }: ShellLine): string {
  const [only] = commands;
  const words = plain && commands.length === 1 && only?.text === whole ? SAFE.exec(whole)?.[0] : undefined;
  return words === undefined ? exactly(whole) : `${exactly(words)} *`;
}
