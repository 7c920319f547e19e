import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { createProcessesBehind } from "./processes-behind.ts";

/** Tells whether a connection to this process was made from behind the wall. */
export type ConnectionJudge = (socket: Pick<Socket, "remoteAddress" | "remotePort" | "localPort">) => boolean;

/**
 * Costs next to nothing while nothing stands behind the wall. While something does, a connection of this machine and this user
 * passes only if its owner is found outside; one whose owner has already left it does not.
 */
export function createConnectionJudge(home: string): ConnectionJudge {
  const behind = createProcessesBehind(home);
  return ({ remoteAddress, remotePort, localPort }) => {
    if (remoteAddress === undefined || remotePort === undefined || localPort === undefined) return false;
    const suspects = behind.list();
    if (suspects.length === 0 || !isOfThisMachine(remoteAddress)) return false;
    const client = findSocket(remotePort, localPort);
    if (client === undefined || client.inode === "0") return true;
    if (client.uid !== process.getuid?.()) return false;
    const holders = suspects.map((pid) => holds(pid, client.inode));
    if (holders.includes(true)) return true;
    // One that does not let itself be looked at may hold it, unless somebody else is seen to.
    return holders.includes(undefined) && !ids().some((pid) => !suspects.includes(pid) && holds(pid, client.inode) === true);
  };
}

function isOfThisMachine(address: string): boolean {
  const plain = address.replace(/^::ffff:/, "");
  if (/^127\.|^::1$/.test(plain)) return true;
  return Object.values(networkInterfaces()).some((each) => each?.some((one) => one.address === plain));
}

/** The client's end of a connection, as the system lists it. */
function findSocket(clientPort: number, serverPort: number): { inode: string; uid: number } | undefined {
  const hex = (port: number) => port.toString(16).toUpperCase().padStart(4, "0");
  const isBetween = ([, from = "", to = ""]: string[]) =>
    from.endsWith(`:${hex(clientPort)}`) && to.endsWith(`:${hex(serverPort)}`);
  for (const table of ["/proc/net/tcp", "/proc/net/tcp6"]) {
    const rows = read(table).split("\n");
    const fields = rows.map((row) => row.trim().split(/\s+/)).find(isBetween);
    if (fields) return { uid: Number(fields[7]), inode: fields[9] ?? "0" };
  }
  return undefined;
}

/** Whether a process has a socket open; undefined where that cannot be seen. */
function holds(pid: number, inode: string): boolean | undefined {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => linkOf(`/proc/${pid}/fd/${fd}`) === `socket:[${inode}]`);
  } catch (error) {
    return error instanceof Error && "code" in error && error.code === "ENOENT" ? false : undefined;
  }
}

function linkOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    // It was closed in between.
    return undefined;
  }
}

function ids(): number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 0);
}

function read(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    // A system without IPv6 has no list of it.
    return "";
  }
}
