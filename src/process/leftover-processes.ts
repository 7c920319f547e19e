import { readdir, readFile } from "node:fs/promises";

/** Within so short a time no system hands out a process number twice. */
const NUMBERS_LAST_MS = 5_000;

/** Looks for processes that a call left behind. */
export interface LeftoverWatch {
  /**
   * Ends every process that carries the mark in its environment, also those that left their process group.
   * One that cleared its environment first is not found, and neither is any where there is no /proc.
   */
  end(): Promise<void>;
}

/** Begun before the call, so that after a short one only the processes that are new have to be looked at. */
export async function watchLeftovers(mark: string): Promise<LeftoverWatch> {
  const started = performance.now();
  const before = new Set(await names("/proc"));
  return {
    async end() {
      const known = performance.now() - started < NUMBERS_LAST_MS ? before : new Set<string>();
      for (let round = 0; round < 20; round += 1) {
        const leftovers = await findMarked(mark, known);
        if (leftovers.length === 0) return;
        for (const pid of leftovers) endProcess(pid);
        await new Promise((done) => setTimeout(done, 10));
      }
    },
  };
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It ended by itself in between.
  }
}

async function findMarked(mark: string, known: ReadonlySet<string>): Promise<number[]> {
  const found: number[] = [];
  for (const name of await names("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid || known.has(name)) continue;
    if ((await environmentOf(pid)).split("\0").includes(mark)) found.push(pid);
  }
  return found;
}

async function names(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch {
    // This system has no /proc.
    return [];
  }
}

async function environmentOf(pid: number): Promise<string> {
  try {
    return await readFile(`/proc/${pid}/environ`, "latin1");
  } catch {
    // It has ended, or belongs to somebody else.
    return "";
  }
}
