import type { Command, Line, Redirect } from "./syntax.ts";

/** Nothing that people write is nested so deep, and whoever walks what was read needs a stack for it. */
export const MAX_DEPTH = 100;

/** How many more words and commands are read; what stands behind them is left unread. */
export interface Budget {
  left: number;
}

export type Closer = "" | ")" | "}";

/** How far a text has been read. */
export interface Reading {
  readonly text: string;
  at: number;
  /** How many groups and substitutions stand around this place. */
  depth: number;
  /** Beyond the depth limit, how many more are open. */
  flattened: number;
  /** Whether the depth limit has just ended the command that is being read. */
  isCut: boolean;
  /** Whether this place is inside `(( … ))`, where `<<` moves bits. */
  inArithmetic: boolean;
  /** The inputs that `<<` announced and whose lines are still to come. */
  awaited: Awaited[];
  /** The substitutions met so far in the commands that are being read. */
  readonly substitutions: Line[];
  readonly budget: Budget;
  /** Where the last `}` stands. */
  readonly lastBrace: number;
  /** Reads the commands up to the mark that closes them. */
  inner(closer: Closer): Line;
  /** Reads a text of its own that runs at this place. */
  apart(text: string): Line;
}

export interface Awaited {
  command: Command;
  redirect: Redirect;
  /** The line that ends it. */
  end: string;
  isIndented: boolean;
  /** Whether variables and commands in it are left as they stand. */
  isPlain: boolean;
}

/** Takes what the pattern, which has to be sticky, finds at this place; "" if that is nothing. */
export function take(reading: Reading, pattern: RegExp): string {
  pattern.lastIndex = reading.at;
  if (!pattern.test(reading.text)) return "";
  const start = reading.at;
  reading.at = pattern.lastIndex;
  return reading.text.slice(start, reading.at);
}

/** Takes everything up to a mark, and the mark. */
export function takeUntil(reading: Reading, mark: string): string {
  const found = reading.text.indexOf(mark, reading.at);
  const inside = reading.text.slice(reading.at, found < 0 ? reading.text.length : found);
  reading.at += inside.length + mark.length;
  return inside;
}
