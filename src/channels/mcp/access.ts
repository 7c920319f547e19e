import { setTimeout as sleep } from "node:timers/promises";
import { ExitCode, UserError } from "../../lib/errors.ts";

/** IO as its MCP server sees it: the routes of the API, in this process or over HTTP. */
export interface IoAccess {
  request<T>(method: string, path: string, body?: unknown): Promise<T>;
  /** Whether the connection is ending, which cancels nothing. */
  isClosing: () => boolean;
}

/** How long a daemon that restarts is waited for. */
const RESTART_MS = 20_000;
const AGAIN_MS = 300;

/** Asks again while the daemon is away, for what can be asked twice. */
export async function persistently<T>(work: () => Promise<T>): Promise<T> {
  const end = performance.now() + RESTART_MS;
  for (;;)
    try {
      return await work();
    } catch (error) {
      const isAway = error instanceof UserError && error.exitCode === ExitCode.unreachable;
      if (!isAway || performance.now() > end) throw error;
      await sleep(AGAIN_MS);
    }
}

/** What a client named, as one part of an address. A name of dots would lead to another address. */
export function segment(name: string): string {
  if (/^\.{0,2}$/.test(name)) throw new UserError(`${JSON.stringify(name)} is not a name.`, { code: BAD_REQUEST });
  return encodeURIComponent(name);
}

/** A page's address; its path may hold slashes. */
export const pageAddress = (path: string): string => `/api/wiki/pages/${path.split("/").map(segment).join("/")}`;

export const BAD_REQUEST = "bad_request";
