import { appendFileSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Redactor } from "./redact.ts";
import { stackOf } from "./stack.ts";

export const LOG_LEVELS = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

type Fields = Record<string, unknown>;
export interface Log {
  debug(message: string, fields?: Fields): void;
  info(message: string, fields?: Fields): void;
  warn(message: string, fields?: Fields): void;
  error(message: string, fields?: Fields): void;
}

export interface LogDeps {
  /** The folder for `io.log`; without one, nothing goes to a file. */
  folder?: string;
  /** Asked at every line, so that it can be changed while the daemon runs. */
  level?: () => LogLevel;
  redactor: Redactor;
  /** Also told every line, for a person who watches a daemon in the foreground. */
  echo?: (line: string) => void;
  maxBytes?: number;
  keep?: number;
  now?: () => Date;
}

/** One JSON object a line, secrets removed from the finished line, the file rotated by size. */
export function createLog({
  folder,
  level = () => "info",
  redactor,
  echo,
  maxBytes = 5_000_000,
  keep = 5,
  now = () => new Date(),
}: LogDeps): Log {
  const file = folder ? join(folder, "io.log") : undefined;
  let size = file ? sizeOf(file) : 0;

  const write =
    (lineLevel: LogLevel) =>
    (message: string, fields: Fields = {}) => {
      if (LOG_LEVELS.indexOf(lineLevel) < LOG_LEVELS.indexOf(level())) return;
      const line = redactor.clean(JSON.stringify({ time: now().toISOString(), level: lineLevel, message, ...plain(fields) }));
      echo?.(line);
      if (!file) return;
      try {
        if (size + line.length > maxBytes) {
          rotate(file, keep);
          size = 0;
        }
        appendFileSync(file, `${line}\n`, { mode: 0o600 });
        size += line.length + 1;
      } catch (error) {
        // A full disk must not end the daemon; the line is still shown to whoever watches.
        echo?.(`the log cannot be written: ${error}`);
      }
    };
  return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}

/** Errors become their message and stack; everything else is left to JSON. */
function plain(fields: Fields): Fields {
  const entries = Object.entries(fields).map(([key, value]) => [key, value instanceof Error ? describe(value) : value]);
  return Object.fromEntries(entries);
}

function describe(error: Error): Fields {
  return {
    message: error.message,
    stack: stackOf(error),
    ...(error.cause instanceof Error ? { cause: describe(error.cause) } : {}),
  };
}

function rotate(file: string, keep: number): void {
  for (let index = keep - 1; index >= 0; index -= 1) {
    const from = index === 0 ? file : `${file}.${index}`;
    if (sizeOf(from) > 0) renameSync(from, `${file}.${index + 1}`);
  }
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}
