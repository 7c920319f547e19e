import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { REHEARSAL } from "../support/cluster.ts";
import { startDaemonProcess } from "../support/daemon.ts";
import { temporaryHome } from "../support/home.ts";
import { isIn, odd } from "../support/mcp/servers.ts";

test("a daemon without MCP servers loads nothing of the protocol, also for a turn; one with a server does", async () => {
  const protocol = /@modelcontextprotocol|src\/mcp\/(?:connection|stdio)\.ts/;
  const without = await sourcesOfDaemon({});
  expect(without.some((source) => source.endsWith("src/mcp/mcp.ts"))).toBe(true);
  expect(without.filter((source) => protocol.test(source))).toEqual([]);
  const having = await sourcesOfDaemon({ mcpServers: { odd: odd("plain") } });
  expect(having.some((source) => source.includes("@modelcontextprotocol/client"))).toBe(true);
});

/**
 * Every source file that a daemon loaded between its start and its end, including one turn, according to V8's coverage data.
 */
async function sourcesOfDaemon(config: Record<string, unknown>): Promise<string[]> {
  const home = temporaryHome(config);
  const folder = mkdtempSync(join(home, "loaded-"));
  const daemon = await startDaemonProcess(home, { ...REHEARSAL, NODE_V8_COVERAGE: folder });
  if ("mcpServers" in config) await isIn(daemon, "odd", "ready");
  expect((await daemon.ask({ text: "hello" })).status).toBe("done");
  await daemon.kill("SIGTERM");
  const own = readdirSync(folder).filter((name) => name.startsWith(`coverage-${daemon.pid}-`));
  const urls = own.flatMap((name) => {
    const { result } = JSON.parse(readFileSync(join(folder, name), "utf8")) as { result: { url: string }[] };
    return result.map(({ url }) => url).filter((url) => url.startsWith("file:") && url.includes("/dist/"));
  });
  return urls.flatMap((url) => JSON.parse(readFileSync(`${fileURLToPath(url)}.map`, "utf8")).sources as string[]);
}
