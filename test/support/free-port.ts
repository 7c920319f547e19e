import { once } from "node:events";
import { createServer } from "node:net";

/**
 * Below the ephemeral port range: the system could give one of those to an outgoing connection before the test's program
 * listens.
 */
const FIRST = 12_000;
const COUNT = 18_000;

/** Finds a loopback port on which nothing listens. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 100; tries += 1) {
    const port = FIRST + Math.floor(Math.random() * COUNT);
    const server = createServer().listen(port, "127.0.0.1");
    const isFree = await once(server, "listening").then(
      () => true,
      () => false,
    );
    if (!isFree) continue;
    server.close();
    await once(server, "close");
    return port;
  }
  throw new Error("no port of loopback is free");
}
