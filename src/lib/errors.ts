/** Exit codes that scripts rely on. */
export const ExitCode = { done: 0, failed: 1, usage: 2, unapproved: 3, unreachable: 4, interrupted: 130 } as const;
export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];

/** The kind of error, for callers that must tell them apart. */
export type Trouble = "missing" | "conflict" | "too large" | "unavailable";

/** Something the user can fix: its message is shown as it is. Anything else that is thrown is a bug. */
export class UserError extends Error {
  override readonly name = "UserError";
  readonly exitCode: ExitCode;
  readonly trouble: Trouble | undefined;
  /** The API's code, for an error that came from there. */
  readonly code: string | undefined;
  constructor(message: string, options: { exitCode?: ExitCode; trouble?: Trouble; code?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.exitCode = options.exitCode ?? ExitCode.failed;
    this.trouble = options.trouble;
    this.code = options.code;
  }
}

/** What was asked for does not exist. */
export function missing(message: string): UserError {
  return new UserError(message, { trouble: "missing" });
}

/** It exists already, or its state does not allow the operation. */
export function conflict(message: string): UserError {
  return new UserError(message, { trouble: "conflict" });
}

/** Something IO depends on is unreachable or broken. */
export function unavailable(message: string, cause?: unknown): UserError {
  return new UserError(message, { trouble: "unavailable", cause });
}

/** A wrong flag, file, variable or config value. */
export function usageError(message: string, cause?: unknown): UserError {
  return new UserError(message, { exitCode: ExitCode.usage, cause });
}

/** The message of any thrown value. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** The `code` of a Node error such as ENOENT, or undefined. */
export function codeOf(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null || !("code" in error)) return undefined;
  return typeof error.code === "string" ? error.code : undefined;
}
