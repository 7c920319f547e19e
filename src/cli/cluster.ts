import type { Command } from "commander";
import { clusterLines } from "../client/status.ts";
import { loadConfig, rawConfig, updateConfig } from "../home/config.ts";
import { ensureHome } from "../home/paths.ts";
import { usageError } from "../lib/errors.ts";
import type { ClusterStatus } from "../protocol/workers.ts";
import { JSON_OPTION, type Json, type Shell } from "./output.ts";

const NONE = { ready: 0, busy: 0, draining: 0, lost: 0 };

/** `io cluster`: the server between this host and its workers. */
export function clusterCommands(program: Command, shell: Shell): void {
  const cluster = program.command("cluster").description("the NATS server through which workers on other hosts are reached");

  cluster
    .command("start")
    .description("start a nats-server and keep it alive, or use the one in the config; a running daemon follows at once")
    .option(
      "--host <name>",
      "the name or address by which workers reach this host; without it the server listens on loopback alone",
    )
    .option("--port <port>", "the server's port (4222, or any that is free)")
    .option(...JSON_OPTION)
    .action(async ({ host, port, json }: Json & { host?: string; port?: string }) => {
      const changes = { ...(host !== undefined && { host }), ...(port !== undefined && { port: portOf(port) }) };
      if (shell.daemon()) {
        const status = await shell.client().request<ClusterStatus>("POST", "/api/cluster/start", changes);
        return shell.print(status, shell.typed(tell(status)), { json });
      }
      ensureHome(shell.paths);
      const { url, server } = loadConfig(shell.paths.config).cluster ?? {};
      const { findServer } = await import("../workers/cluster/program.ts");
      const found = url === undefined ? await findServer(shell.env, shell.paths.home, server) : undefined;
      const status = configure(shell, { ...changes, enabled: true }, found?.version);
      shell.print(status, shell.typed('It is written into config.json: the cluster starts with the daemon ("io start").'), {
        json,
      });
    });

  cluster
    .command("stop")
    .description("stop it, or leave it; workers stay known and come back with the next start")
    .option(...JSON_OPTION)
    .action(async (options: Json) => {
      const status = shell.daemon()
        ? await shell.client().request<ClusterStatus>("POST", "/api/cluster/stop", {})
        : configure(shell, { enabled: false });
      shell.print(status, "The cluster is off: all work is done here.", options);
    });

  cluster
    .command("status")
    .description("how it stands, and who is there")
    .option(...JSON_OPTION)
    .action(async (options: Json) => {
      const status = await shell.client().request<ClusterStatus>("GET", "/api/cluster");
      const off = 'There is no cluster: all work is done here. "io cluster start" sets one up.';
      shell.print(status, shell.typed(status.state === "off" ? off : tell(status)), options);
    });
}

const tell = (status: ClusterStatus): string => `${clusterLines(status).join("\n")}${detailsOf(status)}`;

function detailsOf({ managed, pid, version, url }: ClusterStatus): string {
  if (!managed) return "\nThe server is the one in config.json (cluster.url).";
  const near = /^tls:\/\/(?:127\.|localhost|\[::1\])/.test(url ?? "");
  const alone = near
    ? "\nOnly this host can reach it: io cluster start --host <address> opens it to the network of that address."
    : "";
  return `\nnats-server ${version ?? "?"}${pid === null ? "" : `, pid ${pid}`}. To add a worker: io worker invite${alone}`;
}

/** Configures the next start of the daemon; writes nothing if there is nothing to disable. */
function configure({ paths }: Shell, changes: Record<string, unknown>, version: string | null = null): ClusterStatus {
  const written = rawConfig(paths.config).cluster;
  if (written !== undefined || changes.enabled === true)
    updateConfig(paths.config, { cluster: { ...(written as Record<string, unknown> | undefined), ...changes } });
  const managed = loadConfig(paths.config).cluster?.url === undefined;
  return { state: "off", managed, url: null, pid: null, version, detail: null, workers: NONE, items: [], waiting: [] };
}

function portOf(text: string): number {
  const port = Number(text);
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw usageError(`--port: "${text}" is no port; 1 to 65535 are.`);
  return port;
}
