import { existsSync, readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { onTestFinished } from "vitest";
import { startCluster, type TestCluster, type TestWorker } from "../cluster.ts";
import { providerEnvironment, startDaemonProcess, type TestDaemon } from "../daemon.ts";
import type { AtTheEnd } from "../home.ts";
import { startNetwork } from "../network.ts";

export interface AwayWorker extends TestWorker {
  name: string;
  /** The job folders that remain in the worker's projects folder. */
  left: () => string[];
}

export interface Hosts {
  cluster: TestCluster;
  daemon: TestDaemon;
  workers: AwayWorker[];
  worker(name: string): AwayWorker;
  /** Starts the daemon again. */
  startDaemon(): Promise<TestDaemon>;
}

export interface HostsOptions {
  names?: string[];
  config?: Record<string, unknown>;
  leaseMs?: number;
  atTheEnd?: AtTheEnd;
}

/**
 * Starts a daemon that lets workers do everything they can, its server, and workers that have joined it, each on its own host.
 */
export async function startHosts(
  modelUrl: string,
  { names = ["w1"], config = {}, leaseMs = 60_000, atTheEnd = onTestFinished }: HostsOptions = {},
): Promise<Hosts> {
  const network = await startNetwork(names, atTheEnd);
  const env = providerEnvironment(await network.urlOf(modelUrl));
  const settings = { cluster: { leaseMs }, config: { dispatch: "workers", ...config } };
  const cluster = await startCluster(atTheEnd, { env, network, ...settings });
  const workers: AwayWorker[] = [];
  for (const name of names) {
    const joined = await cluster.join(name, [], atTheEnd);
    workers.push({ ...joined, name, left: () => jobsOf(joined.home) });
  }
  return {
    ...{ cluster, daemon: cluster.daemon, workers },
    worker: (name) => workers.find((each) => each.name === name)!,
    startDaemon: () => startDaemonProcess(cluster.home, env, atTheEnd, undefined, network.hub),
  };
}

/** The job folders in a worker's projects folder. */
export function jobsOf(home: string): string[] {
  const projects = join(dirname(home), `${basename(home)}-projects`);
  const names = (folder: string) => (existsSync(folder) ? readdirSync(folder) : []);
  return names(projects).flatMap((project) => names(join(projects, project, "jobs")));
}
