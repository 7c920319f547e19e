import { type Client, connect } from "../client/client.ts";
import { type DaemonFile, findDaemon } from "../home/daemon-file.ts";
import type { Paths } from "../home/paths.ts";
import { pathsOf } from "../home/paths.ts";
import { codeOf, ExitCode, UserError, usageError } from "../lib/errors.ts";
import { systemError } from "../lib/file-errors.ts";
import { asTyped, type Invocation, invocationOf } from "../lib/invocation.ts";
import { stackOf } from "../lib/stack.ts";
import { terminalSafe } from "../lib/terminal-safe.ts";
import type { ApiError } from "../protocol/api.ts";
import { errorBody, statusOf } from "../protocol/errors.ts";
import { storeTrouble } from "../store/faults.ts";
import { lockHolder } from "../store/lock.ts";
import { isHeld, settledDaemon } from "./settled.ts";

/** Every command has this option. */
export const JSON_OPTION = ["--json", "print one JSON document"] as const;
export type Json = { json?: boolean | undefined };

/** What every command gets: its environment and its output. */
export interface Shell {
  env: NodeJS.ProcessEnv;
  paths: Paths;
  /** Prints one JSON document to standard output, or sanitized text for a person. */
  print(document: unknown, text: string | (() => string), options: { json?: boolean | undefined }): void;
  /** Prints progress and warnings to standard error. */
  note(text: string): void;
  /** How to type IO's programs here. */
  invocation(): Invocation;
  /** Rewrites the commands in a text so that they work when typed here. */
  typed(text: string): string;
  isTerminal: boolean;
  colour: boolean;
  /** The running daemon, if there is one. */
  daemon(): DaemonFile | undefined;
  client(): Client;
}

export function createShell(env: NodeJS.ProcessEnv = process.env): Shell {
  const paths = pathsOf(env);
  const daemon = () => findDaemon(paths, lockHolder);
  const invocation = () => invocationHere(env);
  const typed = (text: string) => (process.stderr.isTTY ? asTyped(text, invocation()) : text);
  const note = (text: string) => void process.stderr.write(`${terminalSafe(typed(text))}\n`);
  const starting = () => (isHeld({ paths }) ? settledDaemon({ paths, daemon, note }) : undefined);
  const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true;
  return {
    env,
    paths,
    print(document, text, { json }) {
      if (json) printDocument(document);
      else process.stdout.write(`${terminalSafe(typeof text === "function" ? text() : text)}\n`);
    },
    note,
    invocation,
    typed,
    isTerminal,
    colour: process.stdout.isTTY === true && !env.NO_COLOR,
    daemon,
    client: () => connect({ paths, env, daemon, starting, folder: folderHere() }),
  };
}

/** The current folder; undefined if it was deleted. */
export function folderHere(): string | undefined {
  try {
    return process.cwd();
  } catch {
    return undefined;
  }
}

/** A text for its reader: on a terminal, its commands are rewritten so that they work there. */
function forReader(text: string, env: NodeJS.ProcessEnv): string {
  const typed = asTyped(text, invocationHere(env));
  if (process.stderr.isTTY || typed === text) return process.stderr.isTTY ? typed : text;
  // Logs have other readers, who know the commands by their names.
  return `${text}\n(Here, io is typed: ${invocationHere(env).io})`;
}

function invocationHere(env: NodeJS.ProcessEnv): Invocation {
  return invocationOf({ env, cwd: folderHere() ?? "/" });
}

/** Handles standard output that is closed or cannot be written. */
export function guardOutput(): void {
  process.stdout.on("error", (error) => {
    // The reader has seen enough, like `head`.
    if (codeOf(error) === "EPIPE") process.exit();
    report(Object.assign(error, { path: "Standard output" }), { json: false });
    process.exit();
  });
  // Whatever cannot be printed is also in the log.
  process.stderr.on("error", () => undefined);
}

/** Prints an error and sets the exit code; only a bug shows its stack. */
export function report(thrown: unknown, { json }: { json: boolean }): void {
  const error = systemError(thrown) ?? databaseError(thrown) ?? thrown;
  const known = error instanceof UserError;
  const text = known ? error.message : error instanceof Error ? (stackOf(error) ?? error.message) : String(error);
  if (json) printDocument(known ? documentOf(error) : errorBody(500, "internal error"));
  const shown = known ? forReader(text, process.env) : text;
  process.stderr.write(`${terminalSafe(shown)}\n`);
  process.exitCode = known ? error.exitCode : ExitCode.failed;
}

function databaseError(thrown: unknown): UserError | undefined {
  return thrown instanceof UserError ? undefined : storeTrouble(thrown);
}

/** A usage error: the person has seen it already, a program reads it here. */
export function reportUsage(message: string, { json }: { json: boolean }): void {
  if (json) printDocument(documentOf(usageError(message)));
  process.exitCode = ExitCode.usage;
}

/** The error as the API would report it; errors that only a command can have are named by their exit code. */
function documentOf({ message, code, trouble, exitCode }: UserError): ApiError {
  if (code === undefined && trouble) return errorBody(statusOf(trouble), message);
  const name = Object.entries(ExitCode).find(([, value]) => value === exitCode)?.[0];
  return { error: { code: code ?? name ?? "failed", message } };
}

function printDocument(document: unknown): void {
  process.stdout.write(`${JSON.stringify(document, null, 2)}\n`);
}
