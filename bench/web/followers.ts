import { createServer, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createReader } from "../../web/src/live/sse.ts";
import { type BenchDaemon, judge, memoryMb, quantile } from "../support.ts";

interface Follower {
  /** When each event arrived, by its id. */
  heard: Map<number, number>;
  leave(): void;
}

/** Measures many clients of one event stream during an answer, compared with the same on a bare server. */
export async function followers(daemon: BenchDaemon, clients: number): Promise<void> {
  const before = memoryMb(daemon.pid);
  const headers = { authorization: `Bearer ${daemon.token}` };
  const all = await Promise.all(Array.from({ length: clients }, () => follow(`${daemon.url}/api/events`, headers)));
  const each = ((memoryMb(daemon.pid) - before) * 1024) / clients;
  await daemon.ask("go on", "watched");
  await sleep(3_000);
  report("through IO", all);
  console.log(`memory of the daemon       ${each.toFixed(1)} KB a client`);
  const events = Math.max(...all.map(({ heard }) => heard.size));
  for (const { leave } of all) leave();

  const bare = await bareServer();
  const others = await Promise.all(Array.from({ length: clients }, () => follow(bare.url, {})));
  await bare.tell(events);
  await sleep(2_000);
  report("bare node:http", others);
  for (const { leave } of others) leave();
  bare.close();
}

/** Reports how much later than the first client the others received an event. */
function report(name: string, all: readonly Follower[]): void {
  const ids = new Set(all.flatMap(({ heard }) => [...heard.keys()]));
  const missed = all.reduce((sum, { heard }) => sum + (ids.size - heard.size), 0);
  const lags: number[] = [];
  for (const id of ids) {
    const times = all.flatMap(({ heard }) => heard.get(id) ?? []);
    const first = Math.min(...times);
    lags.push(...times.map((time) => time - first));
  }
  console.log(`${name.padEnd(26)} ${all.length} clients, ${ids.size} events, lag p99 ${quantile(lags, 0.99).toFixed(1)} ms`);
  judge(`${name}: events that somebody missed`, missed, 0);
}

function follow(url: string, headers: Record<string, string>): Promise<Follower> {
  return new Promise((ready, failed) => {
    const heard = new Map<number, number>();
    const sent = request(url, { headers, agent: false }, (response) => {
      const read = createReader();
      response.setEncoding("utf8");
      response.on("data", (chunk: string) => {
        const now = performance.now();
        for (const { id, name } of read(chunk)) {
          if (name !== "" && id !== undefined) heard.set(id, now);
          else ready({ heard, leave: () => sent.destroy() });
        }
      });
      response.once("error", () => undefined);
    });
    sent.once("error", failed);
    sent.end();
  });
}

async function bareServer() {
  const open = new Set<ServerResponse>();
  const server = createServer((_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(": hello\nid: 0\n\n");
    open.add(response);
  });
  await new Promise<void>((ready) => server.listen(0, "127.0.0.1", ready));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async tell(events: number): Promise<void> {
      for (let id = 1; id <= events; id += 1) {
        for (const response of open) response.write(`id: ${id}\nevent: message.delta\ndata: {"id":"m","text":"word "}\n\n`);
        await sleep(20);
      }
    },
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
