import { join } from "node:path";
import { openForeignServer } from "../cluster/backend.ts";
import { findServer } from "../cluster/program.ts";
import { connectOnce } from "../dispatch/nats/connection.ts";
import { isAlive } from "../lib/alive.ts";
import type { ClusterConfig } from "../lib/config.ts";
import { findDaemon } from "../lib/daemon-file.ts";
import { messageOf } from "../lib/errors.ts";
import { createLog } from "../lib/log.ts";
import type { Paths } from "../lib/paths.ts";
import { smallTextAt } from "../lib/pinned/read.ts";
import { createRedactor } from "../lib/redact.ts";
import type { Finding } from "../protocol/doctor.ts";
import { lockHolder } from "../store/lock.ts";

export interface ClusterFindingDeps {
  paths: Paths;
  env: NodeJS.ProcessEnv;
  cluster: ClusterConfig;
}

const check = "cluster";
const REACH_MS = 5_000;

/** Whether the server for workers can be had. */
export async function findCluster({ paths, env, cluster }: ClusterFindingDeps): Promise<Finding[]> {
  if (cluster.url !== undefined) {
    const log = createLog({ redactor: createRedactor() });
    try {
      const { access } = openForeignServer({ config: cluster, paths, env, log }, cluster.url.split(","));
      await (await connectOnce(access, REACH_MS)).close();
      return [{ check, state: "ok", found: `the server at ${cluster.url} takes the daemon's key` }];
    } catch (error) {
      const remedy = "Look whether it runs, and at cluster.url, cluster.ca and cluster.nkeyFile in config.json.";
      return [{ check, state: "failed", found: `the server at ${cluster.url}: ${messageOf(error)}`, remedy }];
    }
  }
  const { version, canSync } = await findServer(env, paths.home, cluster.server);
  const pid = Number.parseInt(smallTextAt(join(paths.cluster, "nats-server.pid")) ?? "", 10);
  const runs = Number.isInteger(pid) && isAlive(pid);
  if (findDaemon(paths, lockHolder) && !runs)
    return [
      {
        check,
        state: "failed",
        found: `nats-server ${version} is there, but does not run`,
        remedy: 'Run "io cluster start", which says what is in its way.',
      },
    ];
  const found = `nats-server ${version}${runs ? `, pid ${pid}` : "; it starts with the daemon"}`;
  if (canSync) return [{ check, state: "ok", found }];
  return [
    {
      check,
      state: "ok",
      found: `${found}. It writes to the disk every two minutes; what a power cut takes from it, the daemon publishes anew (2.10 and later write at once)`,
    },
  ];
}
