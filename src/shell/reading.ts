import type { Command, Line, Redirect } from "./syntax.ts";

/** Nobody nests commands this deeply, and walking the result needs stack space for each level. */
export const MAX_DEPTH = 100;

/** How many more words and commands are read. Everything after them is ignored. */
export interface Budget {
  left: number;
}

export type Closer = "" | ")" | "}";

/** The position in a text that is being read, and the state there. */
export interface Reading {
  readonly text: string;
  at: number;
  /** How many groups and substitutions enclose this position. */
  depth: number;
  /** How many more are open beyond the depth limit. */
  flattened: number;
  /** Whether the depth limit has just ended the current command. */
  isCut: boolean;
  /** Whether this position is inside `(( … ))`, where `<<` shifts bits. */
  inArithmetic: boolean;
  /** The here-documents whose lines are still to come. */
  awaited: Awaited[];
  /** The substitutions found so far in the commands that are being read. */
  readonly substitutions: Line[];
  readonly budget: Budget;
  /** The position of the last `}`. */
  readonly lastBrace: number;
  /** Reads the commands up to the closing mark. */
  inner(closer: Closer): Line;
  /** Reads a separate text that runs at this position. */
  apart(text: string): Line;
}

export interface Awaited {
  command: Command;
  redirect: Redirect;
  /** The line that ends it. */
  end: string;
  isIndented: boolean;
  /** Whether variables and commands in it are not expanded. */
  isPlain: boolean;
}

/** Consumes what a sticky pattern matches at this position; "" if it does not match. */
export function take(reading: Reading, pattern: RegExp): string {
  pattern.lastIndex = reading.at;
  if (!pattern.test(reading.text)) return "";
  const start = reading.at;
  reading.at = pattern.lastIndex;
  return reading.text.slice(start, reading.at);
}

/** Consumes everything up to and including a mark. Returns it without the mark. */
export function takeUntil(reading: Reading, mark: string): string {
  const found = reading.text.indexOf(mark, reading.at);
  const inside = reading.text.slice(reading.at, found < 0 ? reading.text.length : found);
  reading.at += inside.length + mark.length;
  return inside;
}
