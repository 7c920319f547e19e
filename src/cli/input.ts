import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { codeOf, ExitCode, UserError, usageError } from "../lib/errors.ts";
import type { Shell } from "./output.ts";

/** All of standard input, decoded as a whole so that no character is split. */
export async function readInput(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks).toString("utf8");
}

/** A text from an argument, a file, or "-" for standard input; exactly one of them. */
export async function readContent(given: string | undefined, file: string | undefined): Promise<string> {
  if (given !== undefined && file !== undefined) throw usageError("Give the text as an argument or with --file, not both.");
  if (file !== undefined) return readTextFile(file);
  if (given === undefined)
    throw usageError('There is no text: give it as an argument, with --file, or as "-" on standard input.');
  return given === "-" ? readInput() : given;
}

/** Parses a positive whole number of an option. */
export function wholeNumber(option: string, typed: string, most?: number): number {
  const number = /^[1-9]\d{0,8}$/.test(typed) ? Number(typed) : 0;
  if (number >= 1 && number <= (most ?? number)) return number;
  throw usageError(`${option}: found "${typed}"; allowed: a whole number from 1${most === undefined ? "" : ` to ${most}`}.`);
}

const UNITS: Record<string, number> = { h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** Parses a time span of an option, such as 30d; in milliseconds. */
export function spanMs(option: string, typed: string): number {
  const [, count, unit = ""] = /^(\d{1,5})([hdw])$/.exec(typed) ?? [];
  if (count === undefined)
    throw usageError(`${option}: found "${typed}"; allowed: a number of hours, days or weeks, such as 12h, 30d or 2w.`);
  return Number(count) * UNITS[unit]!;
}

/** Asks before something is lost. Without a terminal, only --yes confirms. */
export async function confirm(shell: Shell, question: string, yes: boolean | undefined): Promise<void> {
  if (yes) return;
  if (!shell.isTerminal) throw usageError(`${question} Nobody can be asked here: add --yes if that is what you want.`);
  if (!(await askYesNo(question))) throw new UserError("Nothing was changed.");
}

/** Asks a yes-or-no question; anything but yes is no. */
export async function askYesNo(question: string): Promise<boolean> {
  const answers = openAnswers(true);
  try {
    return /^y(es)?$/i.test((await answers.next(`${question} [y/N] `)) ?? "");
  } finally {
    answers.close();
  }
}

/** A person's answers, one per line, typed or piped. */
export interface Answers {
  /** The next answer; undefined once there are no more. A `hidden` one is not echoed. */
  next(question: string, options?: { hidden?: boolean }): Promise<string | undefined>;
  close(): void;
}

/** `onInterrupt` is called for Ctrl-C, even between questions: a terminal being read sends no signal for it. */
export function openAnswers(isTerminal: boolean, { onInterrupt }: { onInterrupt?: () => void } = {}): Answers {
  let quiet = false;
  const output = new Writable({
    write(chunk, _encoding, done) {
      if (!quiet) process.stderr.write(chunk);
      done();
    },
  });
  const lines = createInterface({ input: process.stdin, ...(isTerminal && { output }), terminal: isTerminal });
  const given = lines[Symbol.asyncIterator]();
  let interrupted = false;
  lines.on("SIGINT", () => {
    interrupted = true;
    lines.close();
    onInterrupt?.();
  });
  return {
    async next(question, { hidden = false } = {}) {
      if (isTerminal) {
        lines.setPrompt(question);
        lines.prompt();
      } else process.stderr.write(`${question}\n`);
      quiet = hidden && isTerminal;
      const { value, done } = await given.next();
      if (quiet) process.stderr.write("\n");
      quiet = false;
      if (interrupted) throw new UserError("Interrupted. Nothing was changed.", { exitCode: ExitCode.interrupted });
      return done ? undefined : String(value).trim();
    },
    close: () => lines.close(),
  };
}

function readTextFile(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    throw usageError(`${file}: cannot be read (${codeOf(error) ?? "unknown"}).`, error);
  }
}
