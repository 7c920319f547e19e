import type { Transport } from "@modelcontextprotocol/client";
import { messageOf } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { oneLine } from "../lib/quoted.ts";
import { LOGIN_EXPIRED, mcpArguments } from "../protocol/mcp-command.ts";
import type { Connection, ToolList } from "./connection.ts";
import type { Entry } from "./entries.ts";
import { plain } from "./results.ts";

export interface LinkDeps {
  entry: () => Entry;
  version: string;
  /** Opens a new transport for each start. Rejects with a UserError that gives the reason. */
  openTransport: (entry: Entry) => Promise<() => Transport>;
  onTools: (list: ToolList) => void;
  onEnd: () => void;
  /** Whether a person has logged in to the server before. */
  wasLoggedIn?: ((entry: Entry) => boolean) | undefined;
  clean: (text: string) => string;
  log: Log;
  now?: (() => number) | undefined;
}

/** Why a server is unavailable. */
export interface Failure {
  why: string;
  needsLogin: boolean;
  /** When the next attempt is allowed. */
  retryAt: number;
}

const LONGEST_WAIT_MS = 60_000;
/** A server that ran this long started properly. */
const WELL_AFTER_MS = 60_000;
const LONGEST_WHY = 600;
const REFRESH_MS = 300;

/** The connection to one server, opened when needed, with backoff after failures. */
export function createLink(deps: LinkDeps) {
  const { entry, version, openTransport, onTools, onEnd, wasLoggedIn, clean, log, now = Date.now } = deps;
  let connection: Connection | undefined;
  let starting: Promise<Connection> | undefined;
  let failure: Failure | undefined;
  let failures = 0;
  let readySince = 0;
  let isSlow = false;
  let refreshing: NodeJS.Timeout | undefined;
  const closing = new AbortController();

  function ended(why: string, needsLogin = false): void {
    connection = undefined;
    onEnd();
    if (closing.signal.aborted) return;
    if (readySince > 0 && now() - readySince > WELL_AFTER_MS) failures = 0;
    readySince = 0;
    failures += 1;
    failure = { why: oneLine(clean(plain(why)), LONGEST_WHY), needsLogin, retryAt: now() + waitAfter(failures) };
    log.warn("an MCP server is not there", { server: entry().name, why: failure.why });
  }

  const wantsLogin = () => loginWords(entry(), wasLoggedIn?.(entry()) === true);
  async function begin(): Promise<Connection> {
    const { connect, isLoginError, isTooLate, START_MS } = await import("./connection.ts");
    const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(START_MS)]);
    try {
      const transport = await openTransport(entry());
      const made = await connect({
        ...{ transport, version, root: entry().project, isSlow, signal },
        onEnd: (why) => {
          if (connection === made) ended(why);
        },
        onToolsChanged: () => {
          // One refresh answers several notifications.
          refreshing ??= setTimeout(() => void refresh(), REFRESH_MS).unref();
        },
      });
      try {
        onTools(await made.list(signal, entry().config?.tools));
        closing.signal.throwIfAborted();
      } catch (error) {
        await made.close();
        throw error;
      }
      connection = made;
      readySince = now();
      failure = undefined;
      return made;
    } catch (error) {
      if (!isSlow && isTooLate(error) && !closing.signal.aborted) {
        isSlow = true;
        return begin();
      }
      const isLate = signal.aborted && !closing.signal.aborted;
      if (isLoginError(error)) ended(wantsLogin(), true);
      else ended(isLate ? `it did not answer within ${START_MS / 1_000} s` : causesOf(error));
      throw error;
    }
  }

  async function refresh(): Promise<void> {
    refreshing = undefined;
    try {
      const { START_MS } = await import("./connection.ts");
      const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(START_MS)]);
      const list = await connection?.list(signal, entry().config?.tools);
      if (list) onTools(list);
    } catch (error) {
      log.debug("the tools of an MCP server could not be listed again", { server: entry().name, error });
    }
  }

  return {
    connection: () => connection,
    isStarting: () => starting !== undefined,
    failure: () => failure,
    /** Resets the failures after their cause was fixed. */
    resetFailures(): void {
      failure = undefined;
      failures = 0;
    },
    /** How long to wait before the next attempt. */
    waitMs: () => (connection || starting ? 0 : Math.max(0, (failure?.retryAt ?? 0) - now())),
    /** Returns the connection, opening it if necessary. */
    ensure(): Promise<Connection> {
      if (connection) return Promise.resolve(connection);
      starting ??= begin().finally(() => {
        starting = undefined;
      });
      return starting;
    },
    refresh,
    /** Drops a connection after a failed call, so that the next call opens another. */
    lost(given: Connection, error: unknown): void {
      if (connection !== given || !given.isLost(error)) return;
      void given.close().catch(() => undefined);
      if (given.wantsLogin(error)) ended(wantsLogin(), true);
      else ended(causesOf(error));
    },
    /** Closes the connection without counting a failure. */
    async drop(): Promise<void> {
      const before = connection;
      connection = undefined;
      onEnd();
      await before?.close().catch(() => undefined);
    },
    /** Resets the failure count after a successful call. */
    succeeded(): void {
      failures = 0;
    },
    async close(): Promise<void> {
      closing.abort();
      clearTimeout(refreshing);
      await starting?.catch(() => undefined);
      await connection?.close().catch(() => undefined);
      connection = undefined;
    },
  };
}

/** The error message, with its cause if that says more, as behind "fetch failed". */
function causesOf(error: unknown): string {
  const cause = error instanceof Error ? error.cause : undefined;
  const told = messageOf(error);
  const more = cause === undefined ? "" : messageOf(cause);
  return more === "" || told.includes(more) ? told : `${told} (${more})`;
}

/** How long to wait after so many failures. The first retry happens at once. */
const waitAfter = (failures: number): number => (failures === 1 ? 0 : Math.min(LONGEST_WAIT_MS, 1_000 * 2 ** (failures - 2)));

const loginWords = (entry: Entry, hasExpired: boolean): string =>
  `${hasExpired ? `${LOGIN_EXPIRED}, and ` : ""}it wants a login: io mcp login ${mcpArguments(entry)}`;
