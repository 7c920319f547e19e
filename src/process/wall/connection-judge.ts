import { createReadStream, opendirSync, readlinkSync } from "node:fs";
import type { Socket } from "node:net";
import { networkInterfaces } from "node:os";
import { type Breath, createBreath } from "../../lib/breath.ts";
import { codeOf } from "../../lib/errors.ts";
import { createSandboxedProcesses, processIds } from "./sandboxed-processes.ts";

/** Tells whether a connection to this process came from inside the sandbox. */
export type ConnectionJudge = (socket: Pick<Socket, "remoteAddress" | "remotePort" | "localPort">) => Promise<boolean>;

/**
 * Costs almost nothing while the sandbox is empty. Otherwise a local connection of this user counts as coming from inside
 * unless it certainly belongs to no sandboxed process; one that its owner has already closed counts as inside.
 */
export function createConnectionJudge(home: string): ConnectionJudge {
  const sandboxed = createSandboxedProcesses(home);
  return async ({ remoteAddress, remotePort, localPort }) => {
    if (remoteAddress === undefined || remotePort === undefined || localPort === undefined) return false;
    const suspects = sandboxed.list();
    if (suspects.length === 0 || !isOfThisMachine(remoteAddress)) return false;
    const client = await findSocket(remotePort, localPort);
    if (client === undefined || client.inode === "0") return true;
    if (client.uid !== process.getuid?.()) return false;
    const breathe = createBreath();
    const answers = new Set<boolean | undefined>();
    for (const pid of suspects) answers.add(await holds(pid, client.inode, breathe));
    if (answers.has(true)) return true;
    if (!answers.has(undefined)) return false;
    // A process that cannot be examined may be the owner, unless a process outside turns out to be.
    for (const pid of processIds())
      if (!suspects.includes(pid) && (await holds(pid, client.inode, breathe)) === true) return false;
    return true;
  };
}

function isOfThisMachine(address: string): boolean {
  const plain = address.replace(/^::ffff:/, "");
  if (/^127\.|^::1$/.test(plain)) return true;
  return Object.values(networkInterfaces()).some((each) => each?.some((one) => one.address === plain));
}

/** The client's end of a connection, as the system lists it. */
async function findSocket(clientPort: number, serverPort: number): Promise<{ inode: string; uid: number } | undefined> {
  const hex = (port: number) => port.toString(16).toUpperCase().padStart(4, "0");
  const isBetween = ([, from = "", to = ""]: string[]) =>
    from.endsWith(`:${hex(clientPort)}`) && to.endsWith(`:${hex(serverPort)}`);
  for (const table of ["/proc/net/tcp", "/proc/net/tcp6"]) {
    const rows = await rowsWith(table, `:${hex(clientPort)} `);
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

/** The rows of a system table that contain a text. Read as a stream, since the system takes long to list many connections. */
async function rowsWith(table: string, text: string): Promise<string[]> {
  const found: string[] = [];
  let rest = "";
  try {
    for await (const chunk of createReadStream(table, { encoding: "latin1" })) {
      const rows = `${rest}${chunk}`.split("\n");
      rest = rows.pop()!;
      found.push(...rows.filter((row) => row.includes(text)));
    }
  } catch {
    // Without IPv6 there is no such list.
  }
  return found;
}
