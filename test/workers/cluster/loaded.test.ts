import { mkdtempSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { clusterHome, REHEARSAL } from "../../support/cluster.ts";
import { startDaemonProcess } from "../../support/daemon.ts";
import { temporaryHome } from "../../support/home.ts";
import { until } from "../../support/until.ts";

test("without a cluster a daemon loads nothing of the NATS client or of the work elsewhere, and with one it does", async () => {
  const without = await sourcesOfDaemon(temporaryHome());
  expect(without.some((source) => source.endsWith("src/daemon/start.ts"))).toBe(true);
  const late = /@nats-io|src\/(?:cluster\/(?!worker-view)|dispatch\/nats|away\/(?!away\.|closing\.))/;
  expect(without.filter((source) => late.test(source))).toEqual([]);
  const having = await sourcesOfDaemon(await clusterHome({ enabled: true }));
  expect(having.some((source) => source.includes("@nats-io/transport-node"))).toBe(true);
});

/** Every source file that a daemon loaded between its start and its end, according to V8's coverage data. */
async function sourcesOfDaemon(home: string): Promise<string[]> {
  const folder = mkdtempSync(join(home, "loaded-"));
  const daemon = await startDaemonProcess(home, { ...REHEARSAL, NODE_V8_COVERAGE: folder });
  const state = async () => (await daemon.json<{ state: string }>("GET", "/api/cluster")).state;
  await until("the server", async () => ["running", "off"].includes(await state()));
  expect(await daemon.json("GET", "/api/workers")).toEqual({ items: [] });
  await daemon.kill("SIGTERM");
  const own = readdirSync(folder).filter((name) => name.startsWith(`coverage-${daemon.pid}-`));
  const urls = own.flatMap((name) => {
    const { result } = JSON.parse(readFileSync(join(folder, name), "utf8")) as { result: { url: string }[] };
    return result.map(({ url }) => url).filter((url) => url.startsWith("file:") && url.includes("/dist/"));
  });
  expect(urls.length).toBeGreaterThan(3);
  return urls.flatMap((url) => JSON.parse(readFileSync(`${fileURLToPath(url)}.map`, "utf8")).sources as string[]);
}
