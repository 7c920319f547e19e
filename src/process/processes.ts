import { setTimeout as sleep } from "node:timers/promises";
import { isAlive, readProc } from "../lib/alive.ts";
import { exec } from "./exec.ts";

/** The command line of a process; "" if it is gone or not ours to read. */
export async function commandOf(pid: number): Promise<string> {
  const fromProc = readProc(pid, "cmdline");
  if (fromProc !== undefined) return fromProc.replaceAll("\0", " ").trim();
  return (await exec("/bin/ps", ["-p", String(pid), "-o", "command="], { deadlineMs: 2_000 })).stdout.trim();
}

/** The memory of a process in megabytes; 0 if unknown. */
export async function residentMb(pid: number): Promise<number> {
  const status = readProc(pid, "status");
  const kilobytes =
    status === undefined
      ? (await exec("/bin/ps", ["-p", String(pid), "-o", "rss="], { deadlineMs: 2_000 })).stdout
      : /^VmRSS:\s+(\d+)/m.exec(status)?.[1];
  return Math.round(Number(kilobytes ?? 0) / 1024);
}

/** Whether a variable of another process has this value; undefined if that cannot be read. */
export function hasEnvironment(pid: number, name: string, value: string): boolean | undefined {
  return readProc(pid, "environ")?.split("\0").includes(`${name}=${value}`);
}

/** Waits until a process is gone; false if it is still there after the given time. */
export async function waitForExit(pid: number, withinMs: number): Promise<boolean> {
  const until = performance.now() + withinMs;
  while (isAlive(pid)) {
    if (performance.now() > until) return false;
    await sleep(10);
  }
  return true;
}
