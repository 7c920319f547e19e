import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { createLog } from "../../src/lib/log.ts";
import { createRedactor } from "../../src/lib/redact.ts";
import type { ClusterStatus, Worker } from "../../src/protocol/workers.ts";
import { fingerprintOf } from "../../src/workers/cluster/certificate.ts";
import { readInviteUrl } from "../../src/workers/cluster/invitation.ts";
import { filesIn } from "../../src/workers/cluster/materials.ts";
import { endLeftoverServer } from "../../src/workers/cluster/server.ts";
import { fetchAuthority } from "../../src/workers/cluster/server-authority.ts";
import { readWorkerFile } from "../../src/workers/cluster/worker-file.ts";
import type { ClusterAccess } from "../../src/workers/jobs/nats/connection.ts";
import { createNkey } from "../../src/workers/jobs/nats/nkey.ts";
import { cleanEnvironment, IO, runIo, startDaemonProcess, type TestDaemon } from "./daemon.ts";
import { freePort } from "./free-port.ts";
import { type AtTheEnd, temporaryFolder, temporaryHome } from "./home.ts";
import { HUB, type Place, type TestNetwork } from "./network.ts";
import { killed, processesOn } from "./processes.ts";
import { ensureFile } from "./program.ts";
import { until } from "./until.ts";

export const REHEARSAL = { IO_ENGINE: "rehearsal" };
export const NATS_SERVER = "/usr/sbin/nats-server";

export interface TestCluster {
  daemon: TestDaemon;
  home: string;
  io(...args: string[]): ReturnType<typeof runIo>;
  status(): Promise<ClusterStatus>;
  workers(): Promise<Worker[]>;
  invite(): Promise<{ url: string; code: string }>;
  /** Starts a worker in its own process and waits until the daemon reports it ready or busy. */
  join(name: string, args?: readonly string[], atTheEnd?: AtTheEnd, env?: NodeJS.ProcessEnv): Promise<TestWorker>;
  /** The credentials of a client with this key that connects under this name. */
  access(nkeySeed: string, name: string): Promise<ClusterAccess>;
}

export interface TestWorker {
  home: string;
  child: ChildProcess;
  output(): string;
  access: ClusterAccess;
  ended: Promise<number | null>;
  /** Kills the worker and every process it started. */
  kill(): Promise<void>;
}

/**
 * Creates a home whose NATS server, if it gets one, listens on loopback and is stopped after the test even if its daemon died.
 */
export async function clusterHome(
  config: Record<string, unknown> = {},
  atTheEnd: AtTheEnd = onTestFinished,
  rest: Record<string, unknown> = {},
): Promise<string> {
  const port = await freePort();
  const home = temporaryHome({ cluster: { listen: "127.0.0.1", port, enabled: false, ...config }, ...rest }, atTheEnd);
  const log = createLog({ redactor: createRedactor() });
  atTheEnd(() => endLeftoverServer({ files: filesIn(join(home, "cluster")), home, log }));
  return home;
}

export interface ClusterOptions {
  /** Selects the model for the daemon and its workers. */
  env?: NodeJS.ProcessEnv;
  /** More settings for `cluster` in config.json. */
  cluster?: Record<string, unknown>;
  /** The rest of config.json. */
  config?: Record<string, unknown>;
  /** If set, the daemon and its server run on the hub, and each worker runs on the host with its name. */
  network?: TestNetwork;
}

/** Starts a daemon with its own NATS server on loopback. */
export async function startCluster(
  atTheEnd: AtTheEnd = onTestFinished,
  { env = REHEARSAL, config = {}, cluster: own = {}, network }: ClusterOptions = {},
): Promise<TestCluster> {
  await ensureFile(NATS_SERVER, "nats-server");
  const home = await clusterHome({ ...(network && { listen: "0.0.0.0", host: HUB }), ...own }, atTheEnd, config);
  const place = network?.hub;
  const daemon = await startDaemonProcess(home, env, atTheEnd, undefined, place);
  const io = (...args: string[]) => runIo(args, home, env, undefined, place);
  const started = await io("cluster", "start", "--json");
  if (started.code !== 0) throw new Error(`the cluster did not start: ${started.stdout} ${started.stderr}`);
  const cluster: TestCluster = {
    daemon,
    home,
    io,
    status: () => daemon.json("GET", "/api/cluster"),
    workers: async () => (await daemon.json<{ items: Worker[] }>("GET", "/api/workers")).items,
    async invite() {
      const ask = () => io("worker", "invite", "--json");
      const first = await ask();
      // On an overloaded machine the server drops slow clients, and the daemon then asks to try again.
      const { code, stdout } = first.code !== 0 && first.stdout.includes("Try again.") ? await ask() : first;
      if (code !== 0) throw new Error(`no invitation was given: ${stdout}`);
      return JSON.parse(stdout);
    },
    async join(name, args = [], whenOver = onTestFinished, more = {}) {
      const { url, code } = await cluster.invite();
      // A worker also keeps files beside its home, so both are in one folder that is removed as a whole.
      const workerHome = join(temporaryFolder(whenOver), "io");
      const run = network?.host(name).run;
      const worker = startWorker(workerHome, [url, "--code", code, "--name", name, ...args], whenOver, {
        env: { ...env, ...more },
        run,
      });
      const isReady = async () => {
        if (worker.child.exitCode !== null) throw new Error("it has ended");
        return (await cluster.workers()).some((each) => each.name === name && ["ready", "busy"].includes(each.state));
      };
      await until(`the worker ${name}`, isReady, 45_000).catch((error: unknown) => {
        throw new Error(`${name}: ${worker.output()}`, { cause: error });
      });
      return { ...worker, home: workerHome, access: readWorkerFile(join(workerHome, "worker.json"))!.access };
    },
    async access(nkeySeed, name) {
      const { server, fingerprint = "" } = readInviteUrl((await cluster.invite()).url);
      const [host = "", port] = server.split(":");
      const ca = (await fetchAuthority(host, Number(port), fingerprint)) ?? "";
      if (fingerprintOf(ca) !== fingerprint) throw new Error("another authority");
      return { servers: [`tls://${server}`], nkeySeed, tls: { ca }, name };
    },
  };
  return cluster;
}

/** Runs `io worker join` with these arguments until the test is over. */
export function startWorker(
  home: string,
  args: readonly string[],
  atTheEnd: AtTheEnd = onTestFinished,
  { env = REHEARSAL, run = (argv) => [...argv] }: { env?: NodeJS.ProcessEnv; run?: Place | undefined } = {},
) {
  const [first, ...rest] = run([process.execPath, IO, "worker", "join", ...args]);
  const child = spawn(first!, rest, {
    env: cleanEnvironment(home, env),
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.on("data", (chunk) => {
      output += chunk;
    });
  const ended = new Promise<number | null>((done) => child.once("exit", (code) => done(code)));
  const kill = async () => {
    await killed(child);
    // The worker's runtime exits a moment later and still writes into the folder that is about to be removed.
    await until("all of the worker to be gone", () => processesOn(home).length === 0);
  };
  atTheEnd(kill);
  return { child, output: () => output, ended, kill };
}

export const strangersSeed = (): string => createNkey().seed;
