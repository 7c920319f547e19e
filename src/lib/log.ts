import { renameSync } from "node:fs";
import { type Folder, withFolder } from "./pinned/folder.ts";
import { statsOf } from "./pinned/list.ts";
import { appendFile } from "./pinned/write.ts";
import { realOf } from "./real-path.ts";
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
  /** The folder for `io.log`; without it nothing is written to a file. */
  folder?: string;
  /** Called for every line, so that the level can change while the daemon runs. */
  level?: () => LogLevel;
  redactor: Redactor;
  /** Also receives every line, for a daemon in the foreground. */
  echo?: (line: string) => void;
  maxBytes?: number;
  keep?: number;
  now?: () => Date;
}

const FILE = "io.log";

/** One JSON object per line; secrets are removed from the finished line; the file rotates by size. */
export function createLog({
  folder,
  level = () => "info",
  redactor,
  echo,
  maxBytes = 5_000_000,
  keep = 5,
  now = () => new Date(),
}: LogDeps): Log {
  const place = folder === undefined ? undefined : realOf(folder);
  let size = place === undefined ? 0 : sizeAt(place);

  const write =
    (lineLevel: LogLevel) =>
    (message: string, fields: Fields = {}) => {
      if (LOG_LEVELS.indexOf(lineLevel) < LOG_LEVELS.indexOf(level())) return;
      const line = redactor.clean(JSON.stringify({ time: now().toISOString(), level: lineLevel, message, ...plain(fields) }));
      echo?.(line);
      if (place === undefined) return;
      try {
        withFolder(place, (logs) => {
          if (size + line.length > maxBytes) {
            rotate(logs, keep);
            size = 0;
          }
          appendFile(logs, FILE, `${line}\n`);
        });
        size += line.length + 1;
      } catch (error) {
        // A full disk must not end the daemon; a foreground daemon still shows the line.
        echo?.(`the log cannot be written: ${error}`);
      }
    };
  return { debug: write("debug"), info: write("info"), warn: write("warn"), error: write("error") };
}

/** Errors become message and stack; everything else is left to JSON. */
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

function rotate(logs: Folder, keep: number): void {
  for (let index = keep - 1; index >= 0; index -= 1) {
    const from = index === 0 ? FILE : `${FILE}.${index}`;
    if (sizeOf(logs, from) > 0) renameSync(logs.entry(from), logs.entry(`${FILE}.${index + 1}`));
  }
}

function sizeAt(folder: string): number {
  try {
    return withFolder(folder, (logs) => sizeOf(logs, FILE));
  } catch {
    // The folder does not exist yet; each failed line is shown in the foreground.
    return 0;
  }
}

function sizeOf(logs: Folder, file: string): number {
  return Number(statsOf(logs, file)?.size ?? 0);
}
