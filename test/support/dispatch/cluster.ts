import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { packageRoot } from "../../../src/lib/package-root.ts";
import { openStore } from "../../../src/store/open.ts";
import { createWorkerRows, type WorkerRows } from "../../../src/store/workers.ts";
import { hearWorkers } from "../../../src/workers/cluster/presence.ts";
import type { WorkerFile } from "../../../src/workers/cluster/worker-file.ts";
import { workerOf } from "../../../src/workers/cluster/worker-view.ts";
import { connectTo } from "../../../src/workers/jobs/nats/connection.ts";
import { createDesk } from "../../../src/workers/jobs/nats/desk.ts";
import { createNatsDispatcher } from "../../../src/workers/jobs/nats/dispatcher.ts";
import { type Dispatcher, type JobEvent, PROTOCOL } from "../../../src/workers/jobs/port.ts";
import { bundled } from "../bundled.ts";
import { quietLog } from "../engine.ts";
import { temporaryFolder } from "../home.ts";
import { type NatsWorker, startNats } from "../nats.ts";
import { startNetwork, type TestNetwork } from "../network.ts";
import { killed } from "../processes.ts";
import { until } from "../until.ts";
import { LEASE_MS } from "./work.ts";

const program = bundled(join(packageRoot, "test", "support", "dispatch", "worker-process.ts"));

/** A worker in its own process. */
export interface TestWorker {
  child: ChildProcess;
  name: string;
  said: () => string;
  kill: () => Promise<void>;
}

/** Starts a cluster in which each worker runs on its own host. */
export async function startHosts() {
  const names = ["w1", "w2", "w3"];
  const network = await startNetwork(names);
  const known = names.map((name) => ({ name }));
  return { ...(await startCluster(known, network)), host: network.host };
}

/** Starts a server, and can start the daemon's side with a database and workers in their own processes. */
export async function startCluster(
  known: readonly NatsWorker[] = [{ name: "w1" }, { name: "w2" }, { name: "w3" }],
  network?: TestNetwork,
) {
  const folder = temporaryFolder();
  const nats = await startNats(known, onTestFinished, network);
  const notes = join(folder, "notes");
  const events: JobEvent[] = [];
  const database = join(folder, "io.db");

  /** Starts the daemon's side. It is closed after the test, or by `die`. */
  async function daemon({ leaseMs = LEASE_MS } = {}): Promise<Dispatcher & { die: () => Promise<void>; rows: WorkerRows }> {
    const store = openStore(database);
    const rows = createWorkerRows(store);
    for (const { name, labels = [] } of known)
      if (!rows.find(name))
        rows.add({ name, labels, publicKey: nats.publicKey(name), capacity: 2, version: "1.0.0", protocol: PROTOCOL });
    const access = nats.accessTo("daemon");
    const connection = await connectTo(access);
    const workers = () => rows.all().map((row) => workerOf(row));
    const dispatcher = createNatsDispatcher({ store, workers, folder: join(folder, "blobs"), log: quietLog, leaseMs });
    dispatcher.listen((event) => void events.push(event));
    const desk = createDesk({ seed: access.nkeySeed, keyOf: (name) => rows.find(name)?.publicKey });
    hearWorkers({ connection, desk, workers: rows, log: quietLog });
    dispatcher.attend(connection, desk);
    let open = true;
    const die = async () => {
      if (!open) return;
      open = false;
      await connection.close();
      await dispatcher.close();
      store.close();
    };
    onTestFinished(die);
    return { ...dispatcher, die, rows };
  }

  async function worker(
    name: string,
    { labels = [], capacity = 2 }: { labels?: string[]; capacity?: number } = {},
  ): Promise<TestWorker> {
    const file: WorkerFile = { access: nats.accessTo(name), daemon: nats.publicKey("daemon"), labels, capacity };
    const argv = [process.execPath, await program, JSON.stringify(file)];
    const [first, ...args] = network ? network.host(name).run(argv) : argv;
    const child = spawn(first!, args, { stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    for (const stream of [child.stdout!, child.stderr!])
      stream.on("data", (chunk) => {
        said += chunk;
      });
    const kill = () => killed(child);
    onTestFinished(kill);
    await until(`the worker ${name} to be ready`, () => said.includes("ready\n") || child.exitCode !== null);
    return { child, name, said: () => said, kill };
  }

  const lines = () => (existsSync(notes) ? readFileSync(notes, "utf8").trim().split("\n") : []);
  return {
    ...{ nats, daemon, worker, notes, events, folder, database },
    /** The notes that jobs have left, such as `begun job 1 w1`. */
    noted: (start: string) => lines().filter((line) => line.startsWith(`${start} `)),
    untilNoted: (start: string, times = 1) =>
      until(
        `"${start}" ${times} times`,
        () => lines().filter((line) => `${line} `.startsWith(`${start} `)).length >= times,
        30_000,
      ),
  };
}
