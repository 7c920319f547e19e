import { createServer } from "node:net";
import { isLoopbackName } from "../channels/http/guard.ts";
import { listenError } from "../channels/http/listen-error.ts";
import type { Config } from "../home/config.ts";
import { usageError } from "../lib/errors.ts";

/** Where the API is served. */
export interface Address {
  host: string;
  /** 0 means any free port. */
  port: number;
}

/** The address from the environment, else from the config; one that others can reach must be allowed. */
export function addressOf(config: Config, env: NodeJS.ProcessEnv): Address {
  const host = env.IO_HOST || config.host;
  const port = env.IO_PORT ? Number(env.IO_PORT) : config.port;
  if (!Number.isInteger(port) || port < 0 || port > 65_535)
    throw usageError(`IO_PORT: "${env.IO_PORT}" is not a port. Use a whole number from 0 to 65535.`);
  if (!isLoopbackName(host) && !config.allowRemote) {
    throw usageError(
      `The host ${host} can be reached from other machines. Set "allowRemote": true in config.json if that is what you want; the token is asked for all the same.`,
    );
  }
  return { host, port };
}

/**
 * Refuses a config whose address the next start could not serve: one that others can reach without being allowed, or one that
 * this machine does not have. A port in use now may be free by then.
 */
export async function checkAddress(config: Config): Promise<void> {
  const { host } = addressOf(config, {});
  const probe = createServer();
  await new Promise<void>((open, failed) => {
    probe.once("error", (error) => failed(listenError(error, { host, port: 0 })));
    probe.listen(0, host, open);
  });
  await new Promise((closed) => probe.close(closed));
}

export function urlOf({ host, port }: Address): string {
  return `http://${host.includes(":") ? `[${host}]` : host}:${port}`;
}
