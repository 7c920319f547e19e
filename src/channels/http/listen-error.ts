import { codeOf, UserError, usageError } from "../../lib/errors.ts";

/** Explains why the API cannot listen there, and what to do. */
export function listenError(error: unknown, { host, port }: { host: string; port: number }): unknown {
  const code = codeOf(error);
  if (code === "EADDRINUSE")
    return new UserError(
      `Port ${port} on ${host} is taken by another program. Set IO_PORT or "port" in config.json to another one (0 takes any that is free).`,
    );
  if (code === "EACCES")
    return new UserError(
      `Port ${port} on ${host} is reserved for the system. Set IO_PORT or "port" in config.json to one above 1023.`,
    );
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND" || code === "EAI_AGAIN")
    return usageError(
      `This machine has no address ${host}. Set IO_HOST or "host" in config.json to 127.0.0.1 or one of its own.`,
    );
  return error;
}
