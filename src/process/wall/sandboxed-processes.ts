import { accessSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { MARK } from "./data-folder.ts";

/** The processes inside the sandbox of one data folder, whichever process of IO started them. */
export interface SandboxedProcesses {
  /** Their current ids; none without /proc. */
  list(): number[];
}

/** The longest time that setting up a sandbox takes. */
const SETUP_MS = 5_000;

/** Processes enter the sandbox only when they start, so those seen outside need no second check until ids are reused. */
export function createSandboxedProcesses(home: string, now: () => number = () => performance.now()): SandboxedProcesses {
  const outside = new Set<number>();
  const firstSeen = new Map<number, number>();
  let forksThen = 0;
  /** The fork count when no process was left unclassified. */
  let forksWhenClear: number | undefined;

  /** A sandbox that is still being set up has no mark yet. */
  function isSurelyOutside(pid: number): boolean {
    const seen = firstSeen.get(pid) ?? now();
    firstSeen.set(pid, seen);
    return now() - seen > SETUP_MS;
  }

  return {
    list() {
      const forks = forksSoFar();
      if (forks === undefined || forks === forksWhenClear) return [];
      if (forks === 0 || forks - forksThen > idsUntilReuse() / 2) {
        outside.clear();
        firstSeen.clear();
        forksThen = forks;
      }
      const own = namespaceOf("self");
      const known = new Map<number, boolean>();
      const ids = processIds();
      const found = ids.filter((pid) => {
        if (outside.has(pid)) return false;
        const namespace = namespaceOf(pid);
        const isNeighbour = namespace === own || (namespace === undefined && !mayBeSandboxed(pid));
        const sandboxed = !isNeighbour && isSandboxed(pid, home, known);
        if (isNeighbour || (!sandboxed && isSurelyOutside(pid))) outside.add(pid);
        return sandboxed;
      });
      forksWhenClear = forks > 0 && ids.every((pid) => outside.has(pid)) ? forks : undefined;
      return found;
    },
  };
}

/** Whether its mounts or an ancestor's contain the mark. A process can change its mounts, but not its ancestry. */
function isSandboxed(pid: number, home: string, known: Map<number, boolean>): boolean {
  if (pid <= 1) return false;
  const before = known.get(pid);
  if (before !== undefined) return before;
  const found = hasMark(pid, home) || isSandboxed(parentOf(pid), home, known);
  known.set(pid, found);
  return found;
}

function hasMark(pid: number, home: string): boolean {
  try {
    accessSync(join(`/proc/${pid}/root`, home, MARK));
    return true;
  } catch {
    return false;
  }
}

/** A process that cannot be examined counts as inside if it is ours: nobody inside can become another user. */
function mayBeSandboxed(pid: number): boolean {
  const status = readOr(`/proc/${pid}/status`);
  return !/^State:\s+Z/m.test(status) && Number(/^Uid:\s+(\d+)/m.exec(status)?.[1] ?? -1) === process.getuid?.();
}

function parentOf(pid: number): number {
  return Number(/^PPid:\s+(\d+)/m.exec(readOr(`/proc/${pid}/status`))?.[1] ?? 0);
}

function namespaceOf(pid: number | "self"): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/ns/mnt`);
  } catch {
    // It has ended, or cannot be examined.
    return undefined;
  }
}

export function processIds(): number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 0);
}

/** The number of forks since boot; 0 if the system does not count them, undefined without /proc. */
function forksSoFar(): number | undefined {
  const count = /^processes (\d+)/m.exec(readOr("/proc/stat"))?.[1];
  return count === undefined ? undefined : Number(count);
}

function idsUntilReuse(): number {
  return Number(readOr("/proc/sys/kernel/pid_max").trim()) || 32_768;
}

function readOr(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}
