import { readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { isAlive } from "../../../src/lib/alive.ts";
import { packageRoot } from "../../../src/lib/package-root.ts";
import { markOf } from "../../../src/mcp/mcp.ts";
import { hasEnvironment } from "../../../src/process/processes.ts";
import type { McpServer, McpServerDetails } from "../../../src/protocol/mcp.ts";
import type { TestDaemon } from "../daemon.ts";
import { until } from "../until.ts";

const { resolve } = createRequire(import.meta.url);

/** A published MCP server from this project's own dependencies. */
export const published = (name: string, ...args: string[]) => ({
  command: process.execPath,
  args: [resolve(`@modelcontextprotocol/server-${name}/dist/index.js`), ...args],
});

/** The server whose behaviour is selected by `kind`. Notes in `file` what it is asked. */
export const odd = (kind: string, file = "") => ({
  command: process.execPath,
  args: [join(packageRoot, "test", "support", "mcp", "odd-server.mjs"), kind, file],
});

export const serversOf = async (daemon: TestDaemon, project?: string): Promise<McpServer[]> =>
  (await daemon.json<{ items: McpServer[] }>("GET", `/api/mcp${project ? `?project=${encodeURIComponent(project)}` : ""}`)).items;

export const serverOf = (daemon: TestDaemon, name: string, project = "") =>
  daemon.json<McpServerDetails>("GET", `/api/mcp/${name}${project && `?project=${encodeURIComponent(project)}`}`);

/** Waits until a server from config.json is in a state. */
export const isIn = (daemon: TestDaemon, name: string, state: McpServer["state"]): Promise<McpServer> =>
  until(
    `${name} to be ${state}`,
    async () => {
      const found = (await serversOf(daemon)).find((each) => each.name === name);
      // On a busy machine, starting may exceed the time limit, so it is tried again.
      if (state !== "failed" && found?.state === "failed")
        await daemon.json("POST", `/api/mcp/${encodeURIComponent(name)}/test`, {});
      return found?.state === state ? found : undefined;
    },
    60_000,
  );

/** All processes of a home's MCP servers. */
export function serverProcesses(home: string): number[] {
  const [name = "", value = ""] = markOf(home).split("=");
  const pids = readdirSync("/proc").map(Number);
  return pids.filter((pid) => pid > 1 && pid !== process.pid && isAlive(pid) && hasEnvironment(pid, name, value) === true);
}
