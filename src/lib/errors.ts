/** Exit codes that scripts rely on. */
export const ExitCode = { done: 0, failed: 1, usage: 2, unapproved: 3, unreachable: 4, interrupted: 130 } as const;
export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];

/** What kind of trouble a person is in, where a program needs to know. */
export type Trouble = "missing" | "conflict" | "too large" | "unavailable";

/** Something the person can mend: its message is shown as it stands. Anything else that is thrown is a bug. */
export class UserError extends Error {
  override readonly name = "UserError";
  readonly exitCode: ExitCode;
  readonly trouble: Trouble | undefined;
  /** What the API called it, for an error that came from there. */
  readonly code: string | undefined;
  constructor(message: string, options: { exitCode?: ExitCode; trouble?: Trouble; code?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.exitCode = options.exitCode ?? ExitCode.failed;
    this.trouble = options.trouble;
    this.code = options.code;
  }
}

/** What was asked for is not there. */
export function missing(message: string): UserError {
  return new UserError(message, { trouble: "missing" });
}

/** It is there already, or in a state that does not allow it. */
export function conflict(message: string): UserError {
  return new UserError(message, { trouble: "conflict" });
}

/** Something that IO needs for it is out of reach or out of order, whatever was asked for. */
export function unavailable(message: string, cause?: unknown): UserError {
  return new UserError(message, { trouble: "unavailable", cause });
}

/** A wrong flag, file, variable or config value. */
export function usageError(message: string, cause?: unknown): UserError {
  return new UserError(message, { exitCode: ExitCode.usage, cause });
}

/** The text of anything that can be thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The `code` of a Node error such as ENOENT, or undefined. */
export function codeOf(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
