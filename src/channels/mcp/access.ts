import { setTimeout as sleep } from "node:timers/promises";
import { ExitCode, UserError } from "../../lib/errors.ts";

/** The API's routes for the MCP server, called in this process or over HTTP. */
export interface IoAccess {
  request<T>(method: string, path: string, body?: unknown): Promise<T>;
  /** Whether the connection is closing, which cancels nothing. */
  isClosing: () => boolean;
}

/** How long to wait for a restarting daemon. */
const RESTART_MS = 20_000;
const AGAIN_MS = 300;

/** Retries idempotent requests while the daemon is unreachable. */
export async function persistently<T>(work: () => Promise<T>, withinMs = RESTART_MS): Promise<T> {
  const end = performance.now() + withinMs;
  for (;;)
    try {
      return await work();
    } catch (error) {
      if (!isAway(error) || performance.now() > end) throw error;
      await sleep(AGAIN_MS);
    }
}

/** Whether a request failed because no daemon answers. */
export const isAway = (error: unknown): error is UserError =>
  error instanceof UserError && error.exitCode === ExitCode.unreachable;

/** Encodes a client's name as one segment of a path. A name of dots would lead to another path. */
export function segment(name: string): string {
  if (/^\.{0,2}$/.test(name)) throw new UserError(`${JSON.stringify(name)} is not a name.`, { code: BAD_REQUEST });
  return encodeURIComponent(name);
}

/** The address of a page, whose path may contain slashes. */
export const pageAddress = (path: string): string => `/api/wiki/pages/${path.split("/").map(segment).join("/")}`;

export const BAD_REQUEST = "bad_request";
