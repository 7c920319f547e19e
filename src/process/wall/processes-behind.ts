import { accessSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { MARK } from "./data-folder.ts";

/** The processes that stand behind the wall of one data folder, whichever process of IO put them there. */
export interface ProcessesBehind {
  /** Their ids at this moment; none where there is no /proc. */
  list(): number[];
}

/** So long no view takes to be made. */
const MADE_MS = 5_000;

/** A process that is born behind the wall is a new one, so those that were seen outside need no second look until ids may have come round. */
export function createProcessesBehind(home: string, now: () => number = () => performance.now()): ProcessesBehind {
  const outside = new Set<number>();
  const firstSeen = new Map<number, number>();
  let forksThen = 0;
  /** How many forks there had been when nobody was left whose place was not known. */
  let forksWhenClear: number | undefined;

  /** A view that is still being made holds no mark yet. */
  function isSurelyOutside(pid: number): boolean {
    const seen = firstSeen.get(pid) ?? now();
    firstSeen.set(pid, seen);
    return now() - seen > MADE_MS;
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
        const isNeighbour = namespace === own || (namespace === undefined && !mayBeBehind(pid));
        const behind = !isNeighbour && isBehind(pid, home, known);
        if (isNeighbour || (!behind && isSurelyOutside(pid))) outside.add(pid);
        return behind;
      });
      forksWhenClear = forks > 0 && ids.every((pid) => outside.has(pid)) ? forks : undefined;
      return found;
    },
  };
}

/** Its view holds the mark, or it was started by one whose view does: a view can be changed, a parent cannot. */
function isBehind(pid: number, home: string, known: Map<number, boolean>): boolean {
  if (pid <= 1) return false;
  const before = known.get(pid);
  if (before !== undefined) return before;
  const found = hasMark(pid, home) || isBehind(parentOf(pid), home, known);
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

/** One that does not let itself be looked at may be behind the wall if it lives and is ours: nobody there can become somebody else. */
function mayBeBehind(pid: number): boolean {
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
    // It has ended, or does not let itself be looked at.
    return undefined;
  }
}

function processIds(): number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 0);
}

/** How many processes and threads were ever begun; 0 where the system does not count, undefined where it tells nothing. */
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
