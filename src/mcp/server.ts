import { DEFAULT_TIMEOUT_MS } from "../home/mcp-config.ts";
import { messageOf } from "../lib/errors.ts";
import { named, oneLine } from "../lib/quoted.ts";
import type { McpState } from "../protocol/mcp.ts";
import { mcpArguments } from "../protocol/mcp-command.ts";
import type { FormAnswer } from "../protocol/person-form.ts";
import { ToolError, type ToolScope, UnknownOutcome } from "../tools/tool.ts";
import type { Connection, ServerTool } from "./connection.ts";
import type { Entry } from "./entries.ts";
import { readForm } from "./forms.ts";
import { createKnownTools, type KnownToolsDeps } from "./known-tools.ts";
import { createLink, type LinkDeps } from "./link.ts";
import { type CallResult, plain } from "./results.ts";

export interface ServerDeps
  extends Pick<LinkDeps, "version" | "openTransport" | "wasLoggedIn" | "now">,
    Pick<KnownToolsDeps, "state" | "clean" | "log"> {
  entry: Entry;
}

export interface Calling {
  signal: AbortSignal;
  onProgress?: (text: string) => void;
  /** Asks the person in whose turn the call runs to fill in a form. */
  askPerson?: ToolScope["askPerson"];
}

/** One server across its starts and stops. */
export function createServer(deps: ServerDeps) {
  const { version, openTransport, wasLoggedIn, now, state, clean, log } = deps;
  let { entry } = deps;
  const current = () => entry;
  const tools = createKnownTools({ entry: current, state, clean, log });
  const link = createLink({
    ...{ entry: current, version, openTransport, wasLoggedIn, clean, log, now },
    onTools: tools.learn,
    onEnd: tools.disconnected,
  });
  const label = () => named(entry.name, 80);
  const wordsOf = (error: unknown) => oneLine(clean(plain(messageOf(error))), 600);

  /** Returns the connection, or tells the model why there is none. */
  async function connect(signal: AbortSignal): Promise<Connection> {
    const wait = link.waitMs();
    const why = () => link.failure()?.why ?? "nobody knows why";
    if (wait > 0)
      throw new ToolError(
        `The MCP server ${label()} is not there: ${ended(why())} IO tries it again in ${Math.ceil(wait / 1_000)} s.`,
      );
    try {
      return await unlessAborted(link.ensure(), signal);
    } catch {
      signal.throwIfAborted();
      throw new ToolError(`The MCP server ${label()} could not be started: ${ended(why())}`);
    }
  }

  function whyFailed(error: unknown, isThere: boolean, wasTurnedAway: boolean): Error {
    if (wasTurnedAway)
      return new ToolError(
        `The MCP server ${label()} did not take the call, and nothing was done: ${ended(link.failure()?.why ?? wordsOf(error))} It may be called again.`,
      );
    if (!isThere)
      return new UnknownOutcome(
        `The MCP server ${label()} ended while it worked: ${ended(link.failure()?.why ?? "nobody knows why")} Whether the call had an effect is not known: look before you do it again. IO starts the server again when it is next called.`,
      );
    const why = ended(wordsOf(error));
    // The server itself refused, so it knows what it did.
    if (isProtocolError(error)) return new ToolError(`The MCP server ${label()} refused the call: ${why}`);
    return new UnknownOutcome(
      `The MCP server ${label()} gave no answer that IO can use: ${why} Whether the call had an effect is not known.`,
    );
  }

  return {
    entry: current,
    /** Applies a configuration change that leaves it the same server. */
    replace(next: Entry): void {
      entry = next;
      void link.refresh();
    },
    /** Starts the server if it is not connected. Never rejects: `status` shows what went wrong. */
    async start(): Promise<void> {
      if (link.waitMs() === 0) await link.ensure().catch(() => undefined);
    },
    status(): { state: McpState; detail: string | null; protocol: string | null } {
      const connection = link.connection();
      if (connection) return { state: "ready", detail: tools.describe(), protocol: connection.protocol };
      if (link.isStarting()) return { state: "starting", detail: null, protocol: null };
      const failure = link.failure();
      if (!failure) return { state: "off", detail: null, protocol: null };
      return { state: failure.needsLogin ? "needs-login" : "failed", detail: failure.why, protocol: null };
    },
    offered: tools.offered,
    withheld: tools.withheld,
    /** Accepts the current tools after a person has seen them. */
    accept: tools.accept,
    async call(tool: ServerTool, args: Record<string, unknown>, { signal, onProgress, askPerson }: Calling): Promise<CallResult> {
      const connection = await connect(signal);
      if (!tools.isThere(tool))
        throw new ToolError(
          `The MCP server ${label()} has changed or removed this tool, so it was not called. The user can look with: io mcp test ${mcpArguments(entry)}`,
        );
      try {
        const timeoutMs = entry.config?.timeout ?? DEFAULT_TIMEOUT_MS;
        const told = onProgress && ((text: string) => onProgress(`${oneLine(plain(text), 300)}\n`));
        const onForm = async (asked: unknown, ends: AbortSignal): Promise<FormAnswer> => {
          const form = askPerson && readForm(entry.name, asked);
          return form ? askPerson(form, ends) : { action: "decline" };
        };
        const options = { signal, timeoutMs, onForm, ...(told && { onProgress: told }) };
        const result = await connection.call(tool.name, args, options);
        link.succeeded();
        return result;
      } catch (error) {
        signal.throwIfAborted();
        link.lost(connection, error);
        throw whyFailed(error, link.connection() === connection, connection.wasTurnedAway(error));
      }
    },
    /** Reconnects after a person has logged in or out. */
    async reconnect(): Promise<void> {
      const connection = link.connection();
      if (connection) await link.drop();
      link.resetFailures();
      await link.ensure().catch(() => undefined);
    },
    close: link.close,
  };
}
export type Server = ReturnType<typeof createServer>;

/** A reason as a sentence that another one can follow. */
const ended = (why: string) => (/[.!?…]$/.test(why) ? why : `${why}.`);

/** Checks the name, to avoid loading the SDK. */
const isProtocolError = (error: unknown) => error instanceof Error && error.name === "ProtocolError";

function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((done, failed) => {
    const stop = () => failed(signal.reason);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop, { once: true });
    work.then(done, failed).finally(() => signal.removeEventListener("abort", stop));
  });
}
