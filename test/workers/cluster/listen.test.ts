import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { networkInterfaces } from "node:os";
import { expect, test } from "vitest";
import { ClusterConfig } from "../../../src/home/config.ts";
import type { ClusterStatus } from "../../../src/protocol/workers.ts";
import { chooseServerAddress } from "../../../src/workers/cluster/server-address.ts";
import { clusterHome, NATS_SERVER, REHEARSAL } from "../../support/cluster.ts";
import { runIo, startDaemonProcess } from "../../support/daemon.ts";
import { freePort } from "../../support/free-port.ts";
import { temporaryFolder } from "../../support/home.ts";
import { ensureFile } from "../../support/program.ts";

const outer = Object.values(networkInterfaces())
  .flatMap((each) => each ?? [])
  .find(({ internal, family }) => !internal && family === "IPv4")?.address;

test("io cluster start opens the server to this host alone, and to a network only by an address that a person names", async () => {
  await ensureFile(NATS_SERVER, "nats-server");
  const home = await clusterHome({ listen: undefined });
  const daemon = await startDaemonProcess(home, REHEARSAL);
  const start = async (...args: string[]) => {
    const { stdout, stderr, code } = await runIo(["cluster", "start", ...args], home, REHEARSAL);
    expect(code, stderr).toBe(0);
    const { pid } = await daemon.json<ClusterStatus>("GET", "/api/cluster");
    return { stdout, at: listenersOf(pid!) };
  };
  const first = await start();
  expect(first.at).toEqual(["127.0.0.1"]);
  expect(first.stdout).toContain("Only this host can reach it: io cluster start --host <address>");
  expect((await start("--host", "127.0.0.1")).at).toEqual(["127.0.0.1"]);
  expect((await start("--host", "localhost")).at).toEqual(["127.0.0.1"]);
  if (outer === undefined) return;
  const wide = await start("--host", outer);
  expect(wide.at).toEqual([outer]);
  expect(wide.stdout).not.toContain("Only this host");
}, 90_000);

test("where the server listens is decided by what a person named, and by nothing else", async () => {
  const listen = async (config: object) => {
    const place = await chooseServerAddress(ClusterConfig.parse({ port: await freePort(), ...config }), temporaryFolder());
    return place.listen;
  };
  expect(await listen({})).toBe("127.0.0.1");
  expect(await listen({ host: "127.0.0.2" })).toBe("127.0.0.2");
  expect(await listen({ host: "::1" })).toBe("::1");
  expect(await listen({ listen: "127.0.0.1", host: "io.example.org" })).toBe("127.0.0.1");
  expect(await listen({ listen: "0.0.0.0" })).toBe("0.0.0.0");
  // A name or address in front of this host: configured by a person, but not one of its own addresses.
  expect(await listen({ host: "203.0.113.7" })).toBe("0.0.0.0");
  if (outer !== undefined) expect(await listen({ host: outer })).toBe(outer);
});

/** Every address on which a process listens, on any port, over IPv4 and IPv6. */
function listenersOf(pid: number): string[] {
  const own = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((name) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${name}`))?.[1] ?? [];
      } catch {
        // Closed in the meantime.
        return [];
      }
    }),
  );
  return ["tcp", "tcp6"].flatMap((table) =>
    readFileSync(`/proc/${pid}/net/${table}`, "utf8")
      .split("\n")
      .map((line) => line.trim().split(/\s+/))
      .filter((columns) => columns[3] === "0A" && own.has(columns[9] ?? ""))
      .map(([, local = ""]) => {
        const hex = local.split(":")[0] ?? "";
        return hex.length === 8
          ? (hex.match(/../g) ?? [])
              .reverse()
              .map((each) => Number.parseInt(each, 16))
              .join(".")
          : hex;
      }),
  );
}
