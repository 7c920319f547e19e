import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { createUser } from "@nats-io/nkeys";
import { onTestFinished } from "vitest";
import { daemonUser, workerUser } from "../../src/cluster/rights.ts";
import type { ClusterAccess } from "../../src/dispatch/nats/connection.ts";
import { exec } from "../../src/process/exec.ts";
import { type AtTheEnd, temporaryFolder } from "./home.ts";
import { HUB, type TestNetwork } from "./network.ts";
import { killed } from "./processes.ts";
import { ensureFile } from "./program.ts";
import { until } from "./until.ts";

/** Where Debian puts it, which is not on everybody's path. */
const SERVER = "/usr/sbin/nats-server";

export interface NatsWorker {
  name: string;
  labels?: string[];
}

/** A nats-server with JetStream, on a free port or the hub of a network, where the daemon may do everything and workers what they need. */
export async function startNats(
  workers: readonly NatsWorker[] = [{ name: "w1" }, { name: "w2" }, { name: "w3" }],
  atTheEnd: AtTheEnd = onTestFinished,
  network?: TestNetwork,
) {
  await ensureFile(SERVER, "nats-server");
  const folder = temporaryFolder(atTheEnd);
  // Nobody else is in a network of its own.
  const port = network ? 4222 : await freePort();
  const host = network ? "0.0.0.0" : "127.0.0.1";
  const keys = new Map(["daemon", "stranger", ...workers.map(({ name }) => name)].map((name) => [name, createUser()]));
  const publicKey = (name: string) => keys.get(name)!.getPublicKey();
  const users = [
    daemonUser(publicKey("daemon")),
    ...workers.map(({ name, labels = [] }) => workerUser({ publicKey: publicKey(name), name, labels })),
  ];
  const data = join(folder, "jetstream");
  const config = join(folder, "nats.conf");
  const write = (setting: object) => {
    const document = { listen: `${host}:${port}`, jetstream: { store_dir: data, ...setting }, authorization: { users } };
    writeFileSync(config, JSON.stringify(document));
  };
  write({ sync_interval: "always" });
  // Debian 12's server does not know the setting yet.
  if ((await exec(SERVER, ["-t", "-c", config])).code !== 0) write({});
  let server: ChildProcess | undefined;

  async function start(): Promise<void> {
    const argv = [SERVER, "-c", config];
    const [program, ...args] = network ? network.hub.run(argv) : argv;
    server = spawn(program!, args, { stdio: ["ignore", "ignore", "pipe"] });
    let said = "";
    server.stderr!.on("data", (chunk) => {
      said += chunk;
    });
    await until(`nats-server on ${port}: ${said}`, () => said.includes("Server is ready"));
  }
  const kill = async () => {
    if (server) await killed(server);
    server = undefined;
  };
  await start();
  atTheEnd(kill);
  const near = network ? await network.hub.reach(port) : port;
  /** The daemon is where the test is, workers are on hosts of their own where there is a network. */
  const accessTo = (name: string): ClusterAccess => ({
    servers: [network && name !== "daemon" ? `${HUB}:${port}` : `127.0.0.1:${near}`],
    nkeySeed: new TextDecoder().decode(keys.get(name)!.getSeed()),
    name,
  });
  return {
    publicKey,
    accessTo,
    start,
    kill,
    /** As if its disk were new. */
    wipe: () => rmSync(data, { recursive: true, force: true }),
  };
}
export type TestNats = Awaited<ReturnType<typeof startNats>>;

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address ? address.port : 0;
}
