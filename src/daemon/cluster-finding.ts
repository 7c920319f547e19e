import { join } from "node:path";
import type { ClusterConfig } from "../home/config.ts";
import { findDaemon } from "../home/daemon-file.ts";
import type { Paths } from "../home/paths.ts";
import { isAlive } from "../lib/alive.ts";
import { messageOf } from "../lib/errors.ts";
import { createLog } from "../lib/log.ts";
import { smallTextAt } from "../lib/pinned/read.ts";
import { createRedactor } from "../lib/redact.ts";
import type { Finding } from "../protocol/doctor.ts";
import { lockHolder } from "../store/lock.ts";
import { openForeignServer } from "../workers/cluster/backend.ts";
import { findServer } from "../workers/cluster/program.ts";
import { connectOnce } from "../workers/jobs/nats/connection.ts";

export interface ClusterFindingDeps {
  paths: Paths;
  env: NodeJS.ProcessEnv;
  cluster: ClusterConfig;
}

const check = "cluster";
const REACH_MS = 5_000;

/** Whether the server for workers can be used. */
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
  const { version } = await findServer(env, paths.home, cluster.server);
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
  return [{ check, state: "ok", found }];
}
