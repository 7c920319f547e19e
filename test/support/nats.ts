import { type ChildProcess, spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createUser } from "@nats-io/nkeys";
import { onTestFinished } from "vitest";
import type { Worker } from "../../src/protocol/workers.ts";
import { daemonUser, workerUser } from "../../src/workers/cluster/rights.ts";
import type { ClusterAccess } from "../../src/workers/jobs/nats/connection.ts";
import { freePort } from "./free-port.ts";
import { type AtTheEnd, temporaryFolder } from "./home.ts";
import { HUB, type TestNetwork } from "./network.ts";
import { killed } from "./processes.ts";
import { ensureFile } from "./program.ts";
import { until } from "./until.ts";

/** Debian installs it here, which is not on every user's PATH. */
const SERVER = "/usr/sbin/nats-server";

export interface NatsWorker {
  name: string;
  labels?: string[];
}

/**
 * Starts a nats-server with JetStream, on a free port or on the hub of a network. The daemon may do everything, workers only
 * what they need.
 */
export async function startNats(
  workers: readonly NatsWorker[] = [{ name: "w1" }, { name: "w2" }, { name: "w3" }],
  atTheEnd: AtTheEnd = onTestFinished,
  network?: TestNetwork,
  /** If true, the server is misconfigured: every worker may publish and subscribe to everything. */
  { isCareless = false } = {},
) {
  await ensureFile(SERVER, "nats-server");
  const folder = temporaryFolder(atTheEnd);
  // Nobody else uses a port in a separate network.
  const port = network ? 4222 : await freePort();
  const host = network ? "0.0.0.0" : "127.0.0.1";
  const keys = new Map(["daemon", "stranger", ...workers.map(({ name }) => name)].map((name) => [name, createUser()]));
  const publicKey = (name: string) => keys.get(name)!.getPublicKey();
  const users = [
    daemonUser(publicKey("daemon")),
    ...workers.map(({ name }) => (isCareless ? { nkey: publicKey(name) } : workerUser({ publicKey: publicKey(name), name }))),
  ];
  const config = join(folder, "nats.conf");
  // IO does not use JetStream, but a server run by others may have it.
  const jetstream = { store_dir: join(folder, "jetstream") };
  writeFileSync(config, JSON.stringify({ listen: `${host}:${port}`, jetstream, authorization: { users } }));
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
  /** The daemon runs where the test runs. In a network, workers run on hosts of their own. */
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
  };
}
export type TestNats = Awaited<ReturnType<typeof startNats>>;

/** A worker as the daemon lists it. */
export const workerInfo = (name: string, labels: string[] = []): Worker => ({
  ...{ name, labels, state: "ready", capacity: 1, running: 0, version: "1.0.0" },
  ...{ engine: null, wall: null, seenAt: null },
});
