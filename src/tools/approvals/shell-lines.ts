import { exactly } from "../../lib/glob.ts";
import { type PlainCommand, readPlainLine } from "../../shell/plain-line.ts";
import { readShell } from "../../shell/read.ts";
import { type Command, commandsIn, isAssignment } from "../../shell/syntax.ts";

/** A command line as rules see it. */
export interface ShellLine {
  /** All of it, as it was given. */
  whole: string;
  /** Its commands, if it is so plain that they are known for certain. Only these can be allowed one by one. */
  plain: readonly PlainCommand[] | undefined;
  /** Every command found in it, also those inside others, in each spelling that a rule may name. */
  spellings: readonly (readonly string[])[];
  /** Whatever might be a command in it, however a shell reads it; empty where the commands are known. */
  suspected: readonly string[];
}

const MAX_SUSPECTED = 2_000;
const MAX_SUSPECTED_LENGTH = 2_000;

export function readShellLine(command: string): ShellLine {
  const whole = trimmed(command);
  const plain = readPlainLine(command);
  const spellings = plain
    ? plain.map(({ text, words }) => [text, words.join(" ")])
    : commandsIn(readShell(whole)).flatMap((each) => (each.words.length === 0 ? [] : [spellingsOf(each)]));
  return { whole, plain: plain?.length ? plain : undefined, spellings, suspected: plain ? [] : suspectedIn(whole) };
}

/** Without what the shell itself takes for empty at the ends. */
function trimmed(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && " \t\n".includes(text[start]!)) start += 1;
  while (end > start && " \t\n".includes(text[end - 1]!) && text[end - 2] !== "\\") end -= 1;
  return text.slice(start, end);
}

/** With and without assignments in front. */
function spellingsOf({ words }: Command): string[] {
  const texts = words.map(({ text }) => text);
  const start = texts.findIndex((text) => !isAssignment(text));
  return [texts.join(" "), texts.slice(Math.max(0, start)).join(" ")];
}

/** Every run of words, from any of its words on, between any two signs that mean something to a shell. */
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

/** The pattern that a wider decision on this line would keep: the line itself. */
export function patternFor({ whole }: ShellLine): string {
  return exactly(whole);
}
