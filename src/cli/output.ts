import { ExitCode, UserError } from "../lib/errors.ts";
import { harmless } from "../lib/harmless.ts";
import type { Paths } from "../lib/paths.ts";
import { pathsOf } from "../lib/paths.ts";
import { type Client, connect } from "../tui/client.ts";

/** What every command is handed: where it stands, and how it speaks. */
export interface Shell {
  env: NodeJS.ProcessEnv;
  paths: Paths;
  /** One JSON document on standard output, or the text for a person; what a stranger wrote in it plays no tricks on the terminal. */
  print(document: unknown, text: string | (() => string), options: { json?: boolean | undefined }): void;
  /** Progress and warnings, to standard error. */
  note(text: string): void;
  isTerminal: boolean;
  colour: boolean;
  client(): Client;
}

export function createShell(env: NodeJS.ProcessEnv = process.env): Shell {
  const paths = pathsOf(env);
  const isTerminal = process.stdin.isTTY === true && process.stdout.isTTY === true;
  return {
    env,
    paths,
    print(document, text, { json }) {
      const shown = () => harmless(typeof text === "function" ? text() : text);
      process.stdout.write(`${json ? JSON.stringify(document, null, 2) : shown()}\n`);
    },
    note: (text) => void process.stderr.write(`${harmless(text)}\n`),
    isTerminal,
    colour: process.stdout.isTTY === true && !env.NO_COLOR,
    client: () => connect(paths, env),
  };
}

/** Shows what went wrong and sets the exit code; only a bug shows its stack. */
export function report(error: unknown, { json }: { json: boolean }): void {
  const known = error instanceof UserError;
  const text = known ? error.message : error instanceof Error ? (error.stack ?? error.message) : String(error);
  if (json)
    process.stdout.write(
      `${JSON.stringify({ error: { code: known ? "failed" : "internal", message: known ? error.message : "internal error" } }, null, 2)}\n`,
    );
  process.stderr.write(`${harmless(text)}\n`);
  process.exitCode = known ? error.exitCode : ExitCode.failed;
}
