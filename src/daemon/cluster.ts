import { join } from "node:path";
import { type ClusterConfig, rawConfig, updateConfig } from "../home/config.ts";
import type { LiveConfig } from "../home/live-config.ts";
import type { Paths } from "../home/paths.ts";
import { messageOf, unavailable } from "../lib/errors.ts";
import type { ClusterStatus, Invited, Worker } from "../protocol/workers.ts";
import { createWorkerRows } from "../store/workers.ts";
import type { Cluster } from "../workers/cluster/cluster.ts";
import { countOf, workerOf } from "../workers/cluster/worker-view.ts";
import type { NatsDispatcher } from "../workers/jobs/nats/dispatcher.ts";
import type { Dispatcher, Job } from "../workers/jobs/port.ts";
import type { Core } from "./core.ts";

/** Workers on other hosts, switched on and off while the daemon runs. */
export interface ClusterSwitch {
  /** Dispatches jobs to other hosts; undefined if all work is done here. */
  dispatcher(): Dispatcher | undefined;
  /**
   * Call this before anything is resumed: it loads the jobs that an earlier life sent out, though their server may not be up yet.
   */
  prepare(): Promise<void>;
  status(): ClusterStatus;
  /** Enables the cluster in config.json, and starts it. */
  start(changes: Partial<ClusterConfig>): Promise<ClusterStatus>;
  stop(): Promise<ClusterStatus>;
  workers(): Worker[];
  invite(): Promise<Invited>;
  drain(name: string): Promise<Worker>;
  revoke(name: string): Promise<void>;
  /** Applies the current config. */
  follow(): Promise<void>;
  close(): Promise<void>;
}

export interface ClusterSwitchDeps {
  core: Pick<Core, "store" | "log" | "redactor" | "hub">;
  env: NodeJS.ProcessEnv;
  paths: Paths;
  settings: LiveConfig;
  /** Whether something here still waits for a job that an earlier life sent out. */
  isWanted: (job: Job) => boolean;
}

const READY_MS = 10_000;
const NO_CLUSTER = 'There is no cluster. "io cluster start" sets one up.';

/** Loads no cluster code before there is a cluster. */
export function createClusterSwitch({ core, env, paths, settings, isWanted }: ClusterSwitchDeps): ClusterSwitch {
  const { store, log, redactor, hub } = core;
  const rows = createWorkerRows(store);
  let dispatcher: NatsDispatcher | undefined;
  let cluster: Cluster | undefined;
  let tried: string | undefined;
  let trouble: string | null = null;
  let switching: Promise<void> = Promise.resolve();
  let isClosed = false;
  const unsubscribe = hub.subscribe((event) => {
    if (event.type === "config.changed" && event.data.keys.includes("cluster")) void follow();
  });

  /** One change at a time, in the order of the requests. */
  function follow(): Promise<void> {
    switching = switching.then(apply);
    return switching;
  }

  async function apply(): Promise<void> {
    const config = wanted();
    const key = config && JSON.stringify(config);
    if (key === tried) return;
    tried = key;
    await cluster?.stop();
    cluster = undefined;
    trouble = null;
    if (!config) return;
    try {
      // Nothing in this life waits for jobs that an earlier one sent out while there was no cluster.
      const { attend } = await openDispatcher(() => false);
      const { openCluster } = await import("../workers/cluster/cluster.ts");
      cluster = await openCluster({ config, paths, env, workers: rows, attend, hide: redactor.hide, log });
    } catch (error) {
      trouble = messageOf(error);
      log.error("the cluster could not be started", { error });
    }
  }

  /** Once per life: it outlives the server and its connections. */
  async function openDispatcher(wants: (job: Job) => boolean): Promise<NatsDispatcher> {
    if (dispatcher) return dispatcher;
    const { leaseMs } = settings.current().cluster ?? {};
    const { createNatsDispatcher } = await import("../workers/jobs/nats/dispatcher.ts");
    const made = createNatsDispatcher({ store, workers, folder: join(paths.cluster, "data", "blobs"), log, leaseMs });
    const open = made.open().filter(wants);
    await made.reconcile(open.map(({ id }) => id));
    dispatcher = made;
    return made;
  }

  const isLocal = () => settings.current().dispatch === "local";

  function wanted(): ClusterConfig | undefined {
    const config = settings.current().cluster;
    return !isClosed && config?.enabled ? config : undefined;
  }

  function configure(changes: Partial<ClusterConfig>): void {
    const written = rawConfig(paths.config).cluster as Partial<ClusterConfig> | undefined;
    settings.replace(updateConfig(paths.config, { cluster: { ...written, ...changes } }));
    hub.emit({ type: "config.changed", data: { keys: ["cluster"] } });
  }

  const workers = () => rows.all().map((row) => workerOf(row));
  function status(): ClusterStatus {
    const state = !wanted() ? "off" : trouble === null ? "starting" : "failed";
    const off = { state, managed: settings.current().cluster?.url === undefined } as const;
    const now = cluster?.status() ?? { ...off, url: null, pid: null, version: null, detail: trouble };
    const items = workers();
    return { ...now, workers: countOf(items), items, waiting: dispatcher?.waiting() ?? [] };
  }

  function requireCluster(): Cluster {
    if (!cluster) throw unavailable(trouble ?? NO_CLUSTER);
    return cluster;
  }

  return {
    dispatcher: () => (wanted() && !isLocal() ? dispatcher : undefined),
    async prepare() {
      if (wanted()) await openDispatcher((job) => !isLocal() && isWanted(job));
    },
    status,
    async start(changes) {
      // What prevented it may be fixed by now.
      if (!cluster) tried = undefined;
      configure({ ...changes, enabled: true });
      await follow();
      if (!cluster) throw unavailable(trouble ?? NO_CLUSTER);
      if (!(await cluster.ready(READY_MS)))
        throw unavailable(`The cluster does not serve yet: ${status().detail ?? "its server is just starting"}.`);
      return status();
    },
    async stop() {
      if (settings.current().cluster) configure({ enabled: false });
      await follow();
      return status();
    },
    workers,
    invite: async () => requireCluster().invite(),
    drain: async (name) => requireCluster().drain(name),
    async revoke(name) {
      requireCluster().revoke(name);
      dispatcher?.takeBackFrom(name);
    },
    follow,
    async close() {
      isClosed = true;
      unsubscribe();
      await follow();
      await dispatcher?.close();
    },
  };
}
