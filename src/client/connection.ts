import { readToken } from "../lib/api-token.ts";
import type { DaemonFile } from "../lib/daemon-file.ts";
import { ExitCode, messageOf, UserError } from "../lib/errors.ts";
import type { Paths } from "../lib/paths.ts";

export interface ConnectionDeps {
  paths: Pick<Paths, "home" | "token">;
  env: NodeJS.ProcessEnv;
  /** The daemon that serves now, if one does. */
  daemon: () => DaemonFile | undefined;
  /** Where the person stands, told with every message. */
  folder?: string;
}

/** The way to the daemon, which may come back from a restart at another address. */
export interface Connection {
  url(): string;
  /** One request. Rejects with a sentence when nobody answers. */
  call(path: string, init: RequestInit): Promise<Response>;
}

/** Finds the daemon by its `daemon.json` and nowhere else. */
export function openConnection({ paths, env, daemon }: ConnectionDeps): Connection {
  const first = daemon();
  if (!first)
    throw new UserError(`No daemon runs on ${paths.home}. Start one with "io start".`, { exitCode: ExitCode.unreachable });
  let url = urlOf(first);

  const lost = (why: string, cause?: unknown) =>
    new UserError(`The daemon at ${url} does not answer (${why}). See "io logs", or start it again with "io restart".`, {
      exitCode: ExitCode.unreachable,
      cause,
    });

  return {
    url: () => url,
    async call(path, init) {
      const now = daemon();
      // The token is for nobody else who may listen there by now.
      if (!now) throw lost("it has ended");
      url = urlOf(now);
      const token = env.IO_TOKEN || readToken(paths.token);
      try {
        return await fetch(url + path, { ...init, headers: { authorization: `Bearer ${token}`, ...init.headers } });
      } catch (error) {
        throw init.signal?.aborted ? error : lost(messageOf(error), error);
      }
    },
  };
}

function urlOf({ host, port }: DaemonFile): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
