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

/** Whether the terminal listens to us, and not to the shell that put us behind; also true where nobody can tell. */
export function isInForeground(): boolean {
  const stat = readProc(process.pid, "stat");
  if (stat === undefined) return true;
  // What follows the name, which may hold anything: state, parent, group, session, terminal, the group in front of it.
  const [, , group, , , front] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return front === "-1" || front === group;
}
