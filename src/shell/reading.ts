import type { Line, Redirect } from "./syntax.ts";

/** Nothing that people write is nested so deep, and whoever walks what was read needs a stack for it. */
export const MAX_DEPTH = 100;

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
  /** Where the last `}` stands. */
  readonly lastBrace: number;
  /** Reads the commands up to the mark that closes them. */
  inner(closer: Closer): Line;
  /** Reads a text of its own that runs at this place. */
  apart(text: string): Line;
}

export interface Awaited {
  redirect: Redirect;
  within: Line[];
  /** The line that ends it. */
  end: string;
  isIndented: boolean;
  /** Whether variables and commands in it are left as they stand. */
  isPlain: boolean;
}

/** Takes what the pattern, which has to be sticky, finds at this place. */
export function take(reading: Reading, pattern: RegExp): RegExpExecArray | null {
  pattern.lastIndex = reading.at;
  const found = pattern.exec(reading.text);
  if (found) reading.at += found[0].length;
  return found;
}

/** Takes everything up to a mark, and the mark. */
export function takeUntil(reading: Reading, mark: string): string {
  const found = reading.text.indexOf(mark, reading.at);
  const inside = reading.text.slice(reading.at, found < 0 ? reading.text.length : found);
  reading.at += inside.length + mark.length;
  return inside;
}
