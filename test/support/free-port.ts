import { once } from "node:events";
import { createServer } from "node:net";

/** Below the ports that a system gives to outgoing connections: one of those may be taken before the test's own program listens. */
const FIRST = 12_000;
const COUNT = 18_000;

/** A port of loopback on which nothing listens. */
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
