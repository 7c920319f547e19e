import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, connect as dial, type Socket } from "node:net";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { exec } from "../../src/process/exec.ts";
import { type AtTheEnd, temporaryFolder } from "./home.ts";
import { killed } from "./processes.ts";
import { ensureFile } from "./program.ts";
import { until } from "./until.ts";

const IP = "/usr/sbin/ip";
/** The hub's address for the other hosts. */
export const HUB = "10.77.0.1";

/** Turns a program and its arguments into the command that runs it on one host. */
export type Place = (argv: readonly string[]) => string[];

/** A host with its own network, on a cable that can be unplugged. */
export interface TestHost {
  run: Place;
  /** Drops all traffic in both directions, without closing any connection. */
  cut(): Promise<void>;
  mend(): Promise<void>;
  /** How many sockets are listening. */
  listening(): number;
}

/**
 * Creates hosts as network namespaces on one bridge, with the hub at its own address. Needs no privileges, as it uses a user
 * namespace.
 */
export async function startNetwork(names: readonly string[], atTheEnd: AtTheEnd = onTestFinished) {
  await ensureFile(IP, "iproute2");
  const hub = await hold(["unshare", "--user", "--map-root-user", "--net"], atTheEnd);
  const run: Place = (argv) => ["nsenter", "-t", String(hub), "-U", "-n", "--preserve-credentials", ...argv];
  const ip = (place: Place, ...commands: string[]) =>
    must(place(["/bin/sh", "-ec", commands.map((each) => `${IP} ${each}`).join("\n")]));
  await ip(run, "link set lo up", "link add br0 type bridge", `addr add ${HUB}/24 dev br0`, "link set br0 up");
  const hosts = new Map<string, TestHost>();
  for (const [at, name] of names.entries()) {
    const pid = await hold([...run(["unshare", "--net"])], atTheEnd);
    const inside: Place = (argv) => ["nsenter", "-t", String(pid), "-U", "-n", "--preserve-credentials", ...argv];
    const cable = `v${at}`;
    await ip(run, `link add ${cable} type veth peer name eth0 netns ${pid}`, `link set ${cable} master br0 up`);
    await ip(inside, "link set lo up", `addr add 10.77.0.${at + 10}/24 dev eth0`, "link set eth0 up");
    const put = (state: "up" | "down") => ip(run, `link set ${cable} ${state}`);
    hosts.set(name, { run: inside, cut: () => put("down"), mend: () => put("up"), listening: () => listening(pid) });
  }
  const folder = temporaryFolder(atTheEnd);
  let relays = 0;

  /** Opens a port on the test's own loopback that leads to this port on the hub's loopback. */
  async function reach(port: number): Promise<number> {
    const path = join(folder, `${++relays}.sock`);
    await startRelay(run, path, { host: "127.0.0.1", port }, atTheEnd);
    return openRelay({ host: "127.0.0.1", port: 0 }, path, atTheEnd);
  }

  /** Opens a port at the hub's address that leads to this port on the test's own loopback. */
  async function bring(port: number): Promise<number> {
    const path = join(folder, `${++relays}.sock`);
    await openRelay({ path }, { host: "127.0.0.1", port }, atTheEnd);
    return startRelay(run, { host: HUB, port: 0 }, path, atTheEnd);
  }

  return {
    hub: { run, reach },
    host: (name: string): TestHost => hosts.get(name)!,
    /** Turns a URL on the test's own loopback into one that works anywhere in the network. */
    async urlOf(url: string): Promise<string> {
      const { host, port } = new URL(url);
      return url.replace(host, `${HUB}:${await bring(Number(port))}`);
    },
  };
}
export type TestNetwork = Awaited<ReturnType<typeof startNetwork>>;

/** Starts a process that only keeps a namespace alive. Returns its pid once it has entered the namespace. */
async function hold(argv: readonly string[], atTheEnd: AtTheEnd): Promise<number> {
  const [program, ...args] = [...argv, "sleep", "infinity"];
  const child = spawn(program!, args, { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.on("data", (chunk) => {
    said += chunk;
  });
  atTheEnd(() => killed(child));
  await until("a network of its own", () => {
    if (child.exitCode !== null) throw new Error(`${argv.join(" ")}: ${said}`);
    return readFileSync(`/proc/${child.pid}/comm`, "utf8").trim() === "sleep";
  });
  return child.pid!;
}

async function must([program, ...args]: readonly string[]): Promise<void> {
  const { code, output } = await exec(program!, args);
  if (code !== 0) throw new Error(`${program} ${args.join(" ")}: ${output}`);
}

function listening(pid: number): number {
  const lines = ["tcp", "tcp6"].flatMap((name) => readFileSync(`/proc/${pid}/net/${name}`, "utf8").split("\n"));
  return lines.filter((line) => line.trim().split(/\s+/)[3] === "0A").length;
}

type Listen = { path: string } | { host: string; port: number };
type Dial = string | { host: string; port: number };

/** Relays connections in this process. Returns the port it listens on, or 0 for a socket with a path. */
async function openRelay(from: Listen, to: Dial, atTheEnd: AtTheEnd): Promise<number> {
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    const far = typeof to === "string" ? dial(to) : dial(to.port, to.host);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.on("error", () => other.destroy());
      one.on("close", () => {
        sockets.delete(one);
        other.destroy();
      });
    }
    near.pipe(far).pipe(near);
  }).listen(from);
  await once(server, "listening");
  atTheEnd(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  const address = server.address();
  return typeof address === "object" && address ? address.port : 0;
}

/** The same relay for a process in another network: sockets with a path work across network namespaces. */
const RELAY = `const { createServer, connect } = require("node:net");
const [from, to] = process.argv.slice(1).map((text) => JSON.parse(text));
const server = createServer((near) => {
  const far = connect(to);
  near.on("error", () => far.destroy()).on("close", () => far.destroy());
  far.on("error", () => near.destroy()).on("close", () => near.destroy());
  near.pipe(far).pipe(near);
}).listen(from, () => console.log(server.address().port ?? 0));`;

async function startRelay(
  place: Place,
  from: string | { host: string; port: number },
  to: Dial,
  atTheEnd: AtTheEnd,
): Promise<number> {
  const listenAt = typeof from === "string" ? { path: from } : from;
  const dialTo = typeof to === "string" ? { path: to } : to;
  const [program, ...args] = place([process.execPath, "-e", RELAY, JSON.stringify(listenAt), JSON.stringify(dialTo)]);
  const child: ChildProcess = spawn(program!, args, { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  child.stdout!.on("data", (chunk) => {
    said += chunk;
  });
  atTheEnd(() => killed(child));
  await until("the relay", () => said.includes("\n"));
  return Number(said);
}
