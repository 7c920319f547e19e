import { Agent, type IncomingMessage, request } from "node:http";
import { readToken } from "../home/api-token.ts";
import type { DaemonFile } from "../home/daemon-file.ts";
import type { Paths } from "../home/paths.ts";
import { codeOf, ExitCode, messageOf, UserError } from "../lib/errors.ts";

export interface ConnectionDeps {
  paths: Pick<Paths, "home" | "token">;
  env: NodeJS.ProcessEnv;
  /** The running daemon, if there is one. */
  daemon: () => DaemonFile | undefined;
  /** Waits for a daemon that does not serve yet; undefined if none is starting. */
  starting?: () => Promise<DaemonFile | undefined> | undefined;
  /** Identifies the client to the daemon; by default a person at a terminal. */
  client?: "terminal" | "mcp" | "acp";
  /** The person's current folder, sent with every message. */
  folder?: string | undefined;
}

export interface Call {
  /** Whether the response is an endless stream: while it lasts, the daemon is certainly the same. */
  isStream?: boolean;
  method?: string;
  headers?: Record<string, string>;
  body?: string | Uint8Array;
  signal?: AbortSignal;
}

/** The daemon's response; its body streams. */
export interface Answer {
  status: number;
  body: IncomingMessage;
}

/** The connection to the daemon, which may have another address after a restart. */
export interface Connection {
  /** Empty until a daemon that was starting serves. */
  url(): string;
  /** Sends one request. Rejects with a sentence if nobody answers. */
  call(path: string, call: Call): Promise<Answer>;
}

/** Finds the daemon through its `daemon.json` and nowhere else. */
export function openConnection({ paths, env, daemon, starting, client = "terminal" }: ConnectionDeps): Connection {
  const none = () =>
    new UserError(`No daemon runs on ${paths.home}. Start one with "io start".`, { exitCode: ExitCode.unreachable });
  const first = daemon();
  const soon = first ? undefined : starting?.();
  // Whoever calls is told.
  soon?.catch(() => undefined);
  if (!first && !soon) throw none();
  let url = first ? urlOf(first) : "";
  // Node's own client with keep-alive takes half the time of fetch for a small request, and loads nothing.
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
      if (url === "") {
        const found = await soon;
        if (!found) throw none();
        url = urlOf(found);
      }
      // Another program may listen on the port by now, and must not get the token. The check takes time, so it is skipped while a
      // stream is open or a connection was kept: the same daemon is at its other end.
      const isSameDaemon = streams > 0 || hasKeptConnection(agent, url);
      if (!isSameDaemon) look();
      const token = env.IO_TOKEN || readToken(paths.token);
      const headers = { authorization: `Bearer ${token}`, "io-client": client, ...call.headers };
      const send = () => ask(url + path, { ...call, headers }, agent);
      try {
        const answer = await send().catch((error: unknown) => {
          if (!isStale(error)) throw error;
          const before = url;
          look();
          // The first daemon may already have received the request.
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

/** The daemon had just closed the kept connection and did not receive the request. */
class Stale extends Error {
  constructor(override readonly cause: Error) {
    super(cause.message);
  }
}
const isStale = (error: unknown): error is Stale => error instanceof Stale;

/** Whether the next request will use an open connection. */
function hasKeptConnection(agent: Agent, url: string): boolean {
  const { hostname, port } = new URL(url);
  const name = agent.getName({ host: hostname.replace(/^\[|\]$/g, ""), port: Number(port) });
  return agent.freeSockets[name]?.some(({ destroyed }) => !destroyed) === true;
}

function urlOf({ host, port }: DaemonFile): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
