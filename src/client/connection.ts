import { Agent, type IncomingMessage, request } from "node:http";
import { readToken } from "../home/api-token.ts";
import type { DaemonFile } from "../home/daemon-file.ts";
import type { Paths } from "../home/paths.ts";
import { codeOf, ExitCode, messageOf, UserError } from "../lib/errors.ts";

export interface ConnectionDeps {
  paths: Pick<Paths, "home" | "token">;
  env: NodeJS.ProcessEnv;
  /** The daemon that serves now, if one does. */
  daemon: () => DaemonFile | undefined;
  /** What the daemon is told about who asks: a person at a terminal unless said otherwise. */
  client?: "terminal" | "mcp" | "acp";
  /** Where the person stands, told with every message. */
  folder?: string | undefined;
}

export interface Call {
  /** The answer has no end: for as long as it comes, the daemon is surely the one that was found. */
  isStream?: boolean;
  method?: string;
  headers?: Record<string, string>;
  body?: string | Uint8Array;
  signal?: AbortSignal;
}

/** What the daemon answers; the body comes as it is sent. */
export interface Answer {
  status: number;
  body: IncomingMessage;
}

/** The way to the daemon, which may come back from a restart at another address. */
export interface Connection {
  url(): string;
  /** One request. Rejects with a sentence when nobody answers. */
  call(path: string, call: Call): Promise<Answer>;
}

/** Finds the daemon by its `daemon.json` and nowhere else. */
export function openConnection({ paths, env, daemon, client = "terminal" }: ConnectionDeps): Connection {
  const first = daemon();
  if (!first)
    throw new UserError(`No daemon runs on ${paths.home}. Start one with "io start".`, { exitCode: ExitCode.unreachable });
  let url = urlOf(first);
  // Node's own client, kept open: half the time of fetch for a small request, and nothing to load at the first.
  const agent = new Agent({ keepAlive: true });
  let streams = 0;

  const lost = (why: string, cause?: unknown) =>
    new UserError(`The daemon at ${url} does not answer (${why}). See "io logs", or start it again with "io restart".`, {
      exitCode: ExitCode.unreachable,
      cause,
    });

  function look(): void {
    const now = daemon();
    if (!now) throw lost("it has ended");
    url = urlOf(now);
  }

  return {
    url: () => url,
    async call(path, call) {
      // The token is for nobody else who may listen there by now. Looking takes its time, so it is spared while a stream is
      // open, or where a connection was kept: at its other end is whoever was there before.
      const isSure = streams > 0 || hasKeptConnection(agent, url);
      if (!isSure) look();
      const token = env.IO_TOKEN || readToken(paths.token);
      const headers = { authorization: `Bearer ${token}`, "io-client": client, ...call.headers };
      const send = () => ask(url + path, { ...call, headers }, agent);
      try {
        const answer = await send().catch((error: unknown) => {
          if (!isStale(error)) throw error;
          const before = url;
          look();
          // Whether another daemon has it already nobody knows.
          if (url !== before) throw error.cause;
          return send();
        });
        if (call.isStream && answer.status === 200) {
          streams += 1;
          answer.body.once("close", () => {
            streams -= 1;
          });
        }
        return answer;
      } catch (error) {
        throw call.signal?.aborted || error instanceof UserError ? error : lost(messageOf(error), error);
      }
    },
  };
}

function ask(url: string, { method = "GET", headers = {}, body, signal }: Call, agent: Agent): Promise<Answer> {
  return new Promise((answer, fail) => {
    const sent = request(url, { agent, method, headers, ...(signal && { signal }) }, (response: IncomingMessage) =>
      answer({ status: response.statusCode ?? 0, body: response }),
    );
    sent.once("error", (error) => fail(sent.reusedSocket && codeOf(error) === "ECONNRESET" ? new Stale(error) : error));
    sent.end(body);
  });
}

/** The other side had just closed a connection that was kept open, and has not heard of the request. */
class Stale extends Error {
  constructor(override readonly cause: Error) {
    super(cause.message);
  }
}
const isStale = (error: unknown): error is Stale => error instanceof Stale;

/** Whether the next request goes over a connection that is open already. */
function hasKeptConnection(agent: Agent, url: string): boolean {
  const { hostname, port } = new URL(url);
  const name = agent.getName({ host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) });
  return agent.freeSockets[name]?.some(({ destroyed }) => !destroyed) === true;
}

function urlOf({ host, port }: DaemonFile): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
