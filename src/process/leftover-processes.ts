import { readdir, readFile } from "node:fs/promises";

/** No system reuses a process id within this time. */
const PID_REUSE_MS = 5_000;

/** Finds processes that a call left behind. */
export interface LeftoverWatch {
  /**
   * Kills every process that has the mark in its environment, also those that left their process group.
   * A process that cleared its environment is not found, and without /proc none is.
   */
  end(): Promise<void>;
}

/** Must be called before the work starts. After short work only processes that are new since then are checked. */
export async function watchLeftovers(mark: string): Promise<LeftoverWatch> {
  const started = performance.now();
  const before = new Set(await names("/proc"));
  return {
    async end() {
      const known = performance.now() - started < PID_REUSE_MS ? before : new Set<string>();
      await endMarked(mark, known);
    },
  };
}

/** Kills every process that has the mark in its environment. */
export async function endMarked(mark: string, known: ReadonlySet<string> = new Set()): Promise<void> {
  for (let round = 0; round < 20; round += 1) {
    const leftovers = await findMarked(mark, known);
    if (leftovers.length === 0) return;
    for (const pid of leftovers) endProcess(pid);
    await new Promise((done) => setTimeout(done, 10));
  }
}

function endProcess(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It ended meanwhile.
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
    // No /proc here.
    return [];
  }
}

async function environmentOf(pid: number): Promise<string> {
  try {
    return await readFile(`/proc/${pid}/environ`, "latin1");
  } catch {
    // It has ended, or belongs to another user.
    return "";
  }
}
