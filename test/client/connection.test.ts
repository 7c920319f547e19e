import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Connection, openConnection } from "../../src/client/connection.ts";
import type { DaemonFile } from "../../src/home/daemon-file.ts";
import { until } from "../support/until.ts";

/** A daemon that answers with its name. It can be told to drop the next request on a kept-alive connection. */
async function startDaemon(name: string, port = 0) {
  const asked: string[] = [];
  let drops = 0;
  const server: Server = createServer((request, response) => {
    asked.push(String(request.headers.authorization));
    if (drops > 0) {
      drops -= 1;
      request.socket.destroy();
    } else response.end(name);
  });
  await new Promise<void>((ready) => server.listen(port, "127.0.0.1", ready));
  const file: DaemonFile = {
    ...{ pid: process.pid, host: "127.0.0.1", port: (server.address() as AddressInfo).port },
    ...{ version: "1", startedAt: "2026-01-01T00:00:00Z" },
  };
  return {
    asked,
    file,
    dropNext: () => {
      drops = 1;
    },
    end: () =>
      new Promise<void>((ended) => {
        server.close(() => ended());
        server.closeAllConnections();
      }),
  };
}
type Daemon = Awaited<ReturnType<typeof startDaemon>>;

let first: Daemon;
let found: DaemonFile | undefined;
let looks = 0;
let connection: Connection;
const ask = async () => text((await connection.call("/x", {})).body);
const others: Daemon[] = [];

beforeEach(async () => {
  first = await startDaemon("first");
  found = first.file;
  looks = 0;
  const daemon = () => {
    looks += 1;
    return found;
  };
  connection = openConnection({ paths: { home: "/nowhere", token: "/nowhere" }, env: { IO_TOKEN: "secret" }, daemon });
});
afterEach(async () => {
  await first.end();
  for (const daemon of others.splice(0)) await daemon.end();
});

test("the daemon is looked for again only where no connection to it is open", async () => {
  expect(await ask()).toBe("first");
  const before = looks;
  await until("a request that needs no look", async () => {
    const then = looks;
    return (await ask()) === "first" && looks === then;
  });
  expect(looks).toBeLessThanOrEqual(before + 1);
});

test("whoever listens at the address of a daemon that has ended is not given the token", async () => {
  expect(await ask()).toBe("first");
  await first.end();
  found = undefined;
  const stranger = await startDaemon("stranger", first.file.port);
  others.push(stranger);
  // The first request may still find the connection that has just ended.
  await expect(ask()).rejects.toThrow("it has ended");
  await expect(ask()).rejects.toThrow("it has ended");
  expect(stranger.asked).toEqual([]);
});

test("a request over a connection that the daemon had just closed is sent again, to the same daemon alone", async () => {
  expect(await ask()).toBe("first");
  await until("a kept connection", async () => {
    const then = looks;
    return (await ask()) === "first" && looks === then;
  });
  first.dropNext();
  expect(await ask()).toBe("first");

  const second = await startDaemon("second");
  others.push(second);
  first.dropNext();
  found = second.file;
  await expect(ask()).rejects.toThrow("does not answer");
  expect(second.asked).toEqual([]);
  expect(await ask()).toBe("second");
});
