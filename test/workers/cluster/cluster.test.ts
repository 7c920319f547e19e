import { spawn } from "node:child_process";
import { readdirSync, readFileSync, readlinkSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { isAlive } from "../../../src/lib/alive.ts";
import { filesIn } from "../../../src/workers/cluster/materials.ts";
import { nkeyOf } from "../../../src/workers/jobs/nats/nkey.ts";
import { clusterHome, REHEARSAL, startCluster, startWorker } from "../../support/cluster.ts";
import { runIo, startDaemonProcess } from "../../support/daemon.ts";
import { killed, processesOn } from "../../support/processes.ts";
import { until } from "../../support/until.ts";

const modeOf = (path: string) => statSync(path).mode & 0o777;

describe("a cluster", async () => {
  const cluster = await startCluster(afterAll);

  test("a running daemon follows io cluster start without a restart, and keeps its keys to its owner", async () => {
    const status = await cluster.status();
    expect(status).toMatchObject({ state: "running", managed: true, detail: null });
    expect(status.url).toMatch(/^tls:\/\/127\.0\.0\.1:\d+$/);
    expect(isAlive(status.pid!)).toBe(true);
    expect((await cluster.io("cluster", "status", "--json")).stdout).toContain(`"pid": ${status.pid}`);
    expect((await cluster.io("status")).stdout).toContain(`Cluster: running at ${status.url}`);

    const { folder, conf, key, data } = filesIn(join(cluster.home, "cluster"));
    for (const path of [folder, data]) expect(modeOf(path)).toBe(0o700);
    for (const path of [conf, key, join(folder, "ca.key"), join(folder, "daemon.nkey")]) expect(modeOf(path)).toBe(0o600);
    const { jetstream, tls, authorization } = JSON.parse(readFileSync(conf, "utf8"));
    expect(jetstream).toBeUndefined();
    expect(tls.key_file).toBe(key);
    expect(authorization.users.length).toBeGreaterThan(0);
  });

  test("a worker joins with an invitation, is listed with what it is, drained, and ends", async () => {
    const { child, access, home, ended } = await cluster.join("alpha", ["--labels", "gpu,big", "--capacity", "3"]);
    expect(modeOf(join(home, "worker.json"))).toBe(0o600);
    expect(JSON.parse(readFileSync(join(home, "worker.json"), "utf8"))).toEqual({
      ...{ access, labels: ["gpu", "big"], capacity: 3 },
      daemon: nkeyOf(readFileSync(join(cluster.home, "cluster", "daemon.nkey"), "utf8").trim()).publicKey,
    });
    const { items } = JSON.parse((await cluster.io("worker", "list", "--json")).stdout);
    expect(items).toMatchObject([
      { name: "alpha", state: "ready", labels: ["gpu", "big"], capacity: 3, running: 0, version: "0.1.0", engine: "rehearsal" },
    ]);
    expect((await cluster.io("worker", "list")).stdout).toMatch(
      /^alpha {2}ready {2}0 of 3 {2}gpu,big {2}IO 0\.1\.0, engine rehearsal/,
    );
    expect((await cluster.io("status")).stdout).toMatch(/^ {2}alpha {2}ready {2}0 of 3 .*, heard of \d+ s ago$/m);
    expect(listeners(child.pid!)).toEqual([]);
    expect((await runIo(["service", "install", "--print", "--kind", "systemd"], home)).stdout).toMatch(
      /ExecStart=.*"worker" "join"$/m,
    );

    expect(JSON.parse((await cluster.io("worker", "drain", "alpha", "--json")).stdout)).toMatchObject({ state: "draining" });
    expect(await ended).toBe(0);
    // The same command again continues as the same worker, although its code is used up.
    const again = startWorker(home, ["--json"]);
    await until("the drained worker again", () => again.output().includes("takes no more jobs"));
    expect((await cluster.io("worker", "revoke", "alpha", "--json")).stdout).toContain('"revoked": true');
    expect(await cluster.workers()).toEqual([]);
    expect((await cluster.io("worker", "revoke", "alpha")).stderr).toContain('There is no worker called "alpha".');
  });

  test("a server that is killed comes back, and its workers with it", async () => {
    const { child } = await cluster.join("beta");
    const { pid } = await cluster.status();
    process.kill(pid!, "SIGKILL");
    // A server that could not get its port yet is replaced by another one.
    await until("the next server", async () => {
      const { state, pid: now } = await cluster.status();
      return state === "running" && now !== null && now !== pid && isAlive(now);
    });
    const since = new Date().toISOString();
    await until("word from the worker", async () => (await cluster.workers()).some(({ seenAt }) => (seenAt ?? "") > since));
    expect(child.exitCode).toBeNull();
    child.kill("SIGTERM");
    await until("the worker as lost", async () => (await cluster.workers())[0]?.state === "lost");
  });

  test("io cluster stop ends the server and io cluster start brings back the same one", async () => {
    const { pid, url } = await cluster.status();
    expect((await cluster.io("cluster", "stop")).stdout).toContain("The cluster is off");
    expect(isAlive(pid!)).toBe(false);
    expect((await cluster.io("worker", "invite")).stderr).toContain("There is no cluster.");
    expect(JSON.parse((await cluster.io("cluster", "start", "--json")).stdout)).toMatchObject({ state: "running", url });
    expect((await cluster.workers()).map(({ name }) => name)).toEqual(["beta"]);
  });
});

test("the server ends with its daemon; one that a killed daemon left is ended by the next, and a stranger's process is not", async () => {
  const { home, status, daemon } = await startCluster();
  const first = (await status()).pid!;
  await daemon.kill("SIGKILL");
  expect(isAlive(first)).toBe(true);
  const second = await startDaemonProcess(home, REHEARSAL);
  await until("the end of the first server", () => !isAlive(first));
  const running = await until("the second server", async () => {
    const now = await second.json<{ state: string; pid: number }>("GET", "/api/cluster");
    return now.state === "running" ? now : undefined;
  });
  await second.kill("SIGTERM");
  expect(isAlive(running.pid)).toBe(false);
  expect(processesOn(home)).toEqual([]);

  // The pid in the file now belongs to another program, whose command line even contains the server's name.
  const stranger = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)", "nats-server"], { stdio: "ignore" });
  onTestFinished(() => killed(stranger));
  writeFileSync(filesIn(join(home, "cluster")).pid, `${stranger.pid}\n`);
  const third = await startDaemonProcess(home, REHEARSAL);
  await until("the third server", async () => (await third.json<{ state: string }>("GET", "/api/cluster")).state === "running");
  expect(isAlive(stranger.pid!)).toBe(true);
  await third.kill("SIGTERM");
});

test("where there is no server to be found, or its port is taken, a sentence says what to do, and the daemon serves on", async () => {
  const taken = createServer().listen(0, "127.0.0.1");
  await until("the port", () => taken.listening);
  onTestFinished(() => void taken.close());
  const { port } = taken.address() as { port: number };
  const home = await clusterHome({ server: "/nowhere/nats-server" });
  const daemon = await startDaemonProcess(home, REHEARSAL);
  const missing = await runIo(["cluster", "start"], home, REHEARSAL);
  expect(missing.code).toBe(1);
  expect(missing.stderr).toMatch(/\/nowhere\/nats-server is no NATS server.*apt-get install nats-server/);
  await daemon.json("PATCH", "/api/config", { cluster: { listen: "127.0.0.1", enabled: false } });
  const refused = await runIo(["cluster", "start", "--port", String(port)], home, REHEARSAL);
  expect(refused.stderr).toContain(`Port ${port} is taken by another program.`);
  expect((await runIo(["status"], home, REHEARSAL)).stdout).toContain("Cluster: failed. Port");
  expect((await daemon.ask({ text: "hello" })).status).toBe("done");
  expect(processesOn(home).length).toBeGreaterThan(0);
});

test("without a daemon io cluster start writes the config, and the next daemon starts the server", async () => {
  const home = await clusterHome();
  expect((await runIo(["cluster", "status"], home)).code).toBe(4);
  expect((await runIo(["cluster", "start"], home)).stdout).toContain("starts with the daemon");
  const daemon = await startDaemonProcess(home, REHEARSAL);
  await until("the server", async () => (await daemon.json<{ state: string }>("GET", "/api/cluster")).state === "running");
  await daemon.kill("SIGTERM");
});

/** The sockets on which a process listens. */
function listeners(pid: number): string[] {
  const inodes = new Set(
    readFileSync(`/proc/${pid}/net/tcp`, "utf8")
      .split("\n")
      .map((line) => line.trim().split(/\s+/))
      .filter(([, , , state]) => state === "0A")
      .map((columns) => columns[9]),
  );
  return socketsOf(pid).filter((inode) => inodes.has(inode));
}

function socketsOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((name) => {
    try {
      return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${name}`))?.[1] ?? [];
    } catch {
      // Closed in the meantime.
      return [];
    }
  });
}
