import { opendirSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { type Breath, createBreath } from "../../lib/breath.ts";
import { codeOf } from "../../lib/errors.ts";
import { createProcessesBehind } from "./processes-behind.ts";

/** Tells whether a connection to this process came from inside the sandbox. */
export type ConnectionJudge = (socket: Pick<Socket, "remoteAddress" | "remotePort" | "localPort">) => Promise<boolean>;

/**
 * Costs almost nothing while the sandbox is empty. Otherwise a local connection of this user passes only if its owner is
 * found outside; if the owner has already closed it, it does not pass.
 */
export function createConnectionJudge(home: string): ConnectionJudge {
  const behind = createProcessesBehind(home);
  return async ({ remoteAddress, remotePort, localPort }) => {
    if (remoteAddress === undefined || remotePort === undefined || localPort === undefined) return false;
    const suspects = behind.list();
    if (suspects.length === 0 || !isOfThisMachine(remoteAddress)) return false;
    const client = findSocket(remotePort, localPort);
    if (client === undefined || client.inode === "0") return true;
    if (client.uid !== process.getuid?.()) return false;
    const breathe = createBreath();
    const answers = new Set<boolean | undefined>();
    for (const pid of suspects) answers.add(await holds(pid, client.inode, breathe));
    if (answers.has(true)) return true;
    if (!answers.has(undefined)) return false;
    // A process that cannot be examined may be the owner, unless another one is found.
    for (const pid of ids()) if (!suspects.includes(pid) && (await holds(pid, client.inode, breathe)) === true) return false;
    return true;
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
    const rows = read(table)
      .split("\n")
      .filter((row) => row.includes(`:${hex(clientPort)} `));
    const fields = rows.map((row) => row.trim().split(/\s+/)).find(isBetween);
    if (fields) return { uid: Number(fields[7]), inode: fields[9] ?? "0" };
  }
  return undefined;
}

/** Whether a process has a socket open; undefined if unknown. It may have a hundred thousand other files open. */
async function holds(pid: number, inode: string, breathe: Breath): Promise<boolean | undefined> {
  const wanted = `socket:[${inode}]`;
  try {
    const open = opendirSync(`/proc/${pid}/fd`, { bufferSize: 256 });
    try {
      for (let fd = open.readSync(); fd !== null; fd = open.readSync()) {
        if (linkOf(`/proc/${pid}/fd/${fd.name}`) === wanted) return true;
        await breathe();
      }
      return false;
    } finally {
      open.closeSync();
    }
  } catch (error) {
    return codeOf(error) === "ENOENT" ? false : undefined;
  }
}

function linkOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    // It was closed meanwhile.
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
    // Without IPv6 there is no such list.
    return "";
  }
}
