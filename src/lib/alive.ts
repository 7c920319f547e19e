import { readFileSync } from "node:fs";
import { codeOf } from "./errors.ts";

/** Whether a process is running. A zombie does not count. */
export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return codeOf(error) === "EPERM";
  }
  const status = readProc(pid, "status");
  return status === undefined || !/^State:\s+Z/m.test(status);
}

/** Reads a file of `/proc/<pid>`; undefined without /proc, or if the process is gone or belongs to another user. */
export function readProc(pid: number, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch {
    return undefined;
  }
}

/** Whether we are the terminal's foreground process group; also true where this cannot be told. */
export function isInForeground(): boolean {
  const stat = readProc(process.pid, "stat");
  if (stat === undefined) return true;
  // After the command name, which may contain anything: state, ppid, pgrp, session, tty, foreground pgrp.
  const [, , group, , , front] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return front === "-1" || front === group;
}
