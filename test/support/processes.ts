import { readdirSync } from "node:fs";
import { join } from "node:path";
import { isAlive } from "../../src/lib/alive.ts";
import { hasEnvironment } from "../../src/process/processes.ts";

/** Every process that works on a home: the daemon, its runtimes, and what they started. */
export function processesOn(home: string): number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => pid > 1 && pid !== process.pid && isAlive(pid))
    .filter((pid) => hasEnvironment(pid, "IO_HOME", home) || hasEnvironment(pid, "COPILOT_HOME", join(home, "sessions")));
}
