import { mkdirSync, readFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { startDaemon } from "../src/daemon/start.ts";
import type { Item } from "./silence-inputs.ts";
import { temporaryFolder } from "./support.ts";

/** Sends requests to a daemon in this process, whose event loop is measured. */
export async function throughRequests(only: string, deal: (item: Item) => Promise<void>): Promise<void> {
  const folder = temporaryFolder();
  const home = join(folder.path, "home");
  mkdirSync(home, { mode: 0o700 });
  const daemon = await startDaemon({ env: { PATH: process.env.PATH, HOME: home, IO_HOME: home, IO_PORT: "0" } });
  try {
    const ours = { authorization: `Bearer ${readFileSync(join(home, "token"), "utf8").trim()}` };
    const megabyte = keys(60_000);
    const many = keys(9_000);
    const send = (method: string, path: string, body: Buffer, headers = {}) =>
      answered(`${daemon.url}${path}`, method, body, headers);
    const items: Item[] = [
      { what: "a login without a token, of 1 MB of keys", work: () => send("POST", "/api/login", megabyte) },
      { what: "a change of the config of 1 MB of keys", work: () => send("PATCH", "/api/config", megabyte, ours) },
      { what: "a change of the config of 9,000 keys", work: () => send("PATCH", "/api/config", many, ours) },
    ];
    for (const item of items.filter(({ what }) => what.includes(only))) await deal(item);
  } finally {
    await daemon.stop();
    folder.remove();
  }
}

const keys = (count: number) =>
  Buffer.from(JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, at) => [`key${at}`, at]))));

/** Resolves when the answer arrives or the connection ends, since a body that is too long is refused unread. */
function answered(url: string, method: string, body: Buffer, headers: Record<string, string>): Promise<void> {
  return new Promise((done) => {
    const about = { "content-type": "application/json", "content-length": String(body.length) };
    const asked = request(url, { method, headers: { ...headers, ...about } });
    asked.once("response", (response) => response.resume().once("close", done));
    asked.once("error", () => done());
    asked.end(body);
  });
}
