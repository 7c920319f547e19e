import { readdir, readFile } from "node:fs/promises";

/**
 * Ends every process that carries the mark in its environment, also those that left their process group.
 * One that cleared its environment first is not found, and neither is any where there is no /proc.
 */
export async function endLeftoverProcesses(mark: string): Promise<void> {
  for (let round = 0; round < 20; round += 1) {
    const strays = await findMarked(mark);
    if (strays.length === 0) return;
    for (const pid of strays) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It ended by itself in between.
      }
    }
    await new Promise((done) => setTimeout(done, 10));
  }
}

async function findMarked(mark: string): Promise<number[]> {
  const found: number[] = [];
  for (const name of await names("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
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
