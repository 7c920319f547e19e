import { readFileSync } from "node:fs";
import { codeOf } from "./errors.ts";

/** Whether a process runs. One that has ended but was not yet collected by its parent does not. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return codeOf(error) === "EPERM";
  }
  const status = readProc(pid, "status");
  return status === undefined || !/^State:\s+Z/m.test(status);
}

/** A file of what Linux tells about a process; undefined elsewhere, or for a process that is gone or not ours. */
export function readProc(pid: number, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return undefined;
  }
}
