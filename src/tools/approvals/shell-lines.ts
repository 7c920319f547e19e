import { exactly } from "../../lib/glob.ts";
import { type PlainCommand, readPlainLine } from "../../shell/plain-line.ts";
import { readShell } from "../../shell/read.ts";
import { type Command, commandsIn, isAssignment } from "../../shell/syntax.ts";

/** A command line as rules see it. */
export interface ShellLine {
  /** The whole line, as it was given. */
  whole: string;
  /** Its commands, if the line is plain enough to know them for certain. Only these can be allowed one by one. */
  plain: readonly PlainCommand[] | undefined;
  /** Every command found in it, nested ones included, in each spelling that a rule may name. */
  spellings: readonly (readonly string[])[];
  /** The files that its redirects name; empty if the commands are known, which then write none. */
  targets: readonly string[];
  /** Everything that may be a command in it, however a shell reads it; empty if the commands are known. */
  suspected: readonly string[];
  /** Whether it was read to its end. */
  isWhole: boolean;
}

/** How many words and commands are read. */
const MAX_READ = 5_000;
const MAX_SUSPECTED = 2_000;
const MAX_SUSPECTED_LENGTH = 2_000;

export function readShellLine(command: string): ShellLine {
  const whole = trimmed(command);
  const plain = readPlainLine(command);
  const budget = { left: MAX_READ };
  const commands = plain ? [] : commandsIn(readShell(whole, budget));
  const spellings = plain
    ? plain.map(({ text, words }) => [text, words.join(" ")])
    : commands.flatMap((each) => (each.words.length === 0 ? [] : [spellingsOf(each)]));
  return {
    ...{ whole, plain: plain?.length ? plain : undefined, spellings },
    targets: commands.flatMap(({ redirects }) => redirects.map(({ target }) => target.text)),
    suspected: plain ? [] : suspectedIn(whole),
    isWhole: budget.left >= 0,
  };
}

/** Removes what the shell itself treats as blank at the ends. */
function trimmed(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && " \t\n".includes(text[start]!)) start += 1;
  while (end > start && " \t\n".includes(text[end - 1]!) && text[end - 2] !== "\\") end -= 1;
  return text.slice(start, end);
}

/** The command with and without its leading assignments. */
function spellingsOf({ words }: Command): string[] {
  const texts = words.map(({ text }) => text);
  const start = texts.findIndex((text) => !isAssignment(text));
  return [texts.join(" "), texts.slice(Math.max(0, start)).join(" ")];
}

/** Every run of words between any two characters that are special to a shell, from each of its words on. */
function suspectedIn(text: string): string[] {
  const found: string[] = [];
  const runs = text.replace(/\\\n|["'\\]/g, "").split(/[;&|(){}<>`$[\]\n!]+/);
  for (const run of runs) {
    const words = run.slice(0, MAX_SUSPECTED_LENGTH).trim().split(/\s+/);
    for (const at of words.keys()) {
      if (found.length >= MAX_SUSPECTED) return found;
      found.push(words.slice(at).join(" "));
    }
  }
  return found;
}

/** The pattern that a wider decision on this line would store: the line itself. */
export function patternFor({ whole }: ShellLine): string {
  return exactly(whole);
}
