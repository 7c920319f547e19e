import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { packageRoot } from "../../src/lib/package-root.ts";

const MONITOR = join(packageRoot, "test", "support", "loop-monitor.mjs");

/** Watches the event loop of a program that a test starts. */
export interface LoopWatch {
  /** Arguments for node, before the program's name. */
  args: string[];
  env: NodeJS.ProcessEnv;
  /** From now on the loop must not block. What a program does before it serves requests delays nobody. */
  begin(): void;
  /** Throws if the program's own work has blocked the loop for more than 100 ms since then, scaled to a quiet machine. */
  end(): void;
}

export function watchLoop(): LoopWatch {
  const folder = mkdtempSync(join(tmpdir(), "io-loop-"));
  const file = join(folder, "stalls");
  let begunAt = Number.POSITIVE_INFINITY;
  return {
    args: ["--import", MONITOR],
    env: { IO_TEST_LOOP_LOG: file, IO_TEST_QUIET_PACE: process.env.IO_TEST_QUIET_PACE },
    begin() {
      writeFileSync(file, "");
      // The program may run as another user.
      chmodSync(folder, 0o755);
      chmodSync(file, 0o666);
      begunAt = Date.now();
    },
    end() {
      const stalls = read(file).filter(({ beganAt }) => beganAt > begunAt);
      rmSync(folder, { recursive: true, force: true });
      if (stalls.length === 0) return;
      throw new Error(`the daemon's event loop stood still for ${stalls.map(({ ms }) => `${ms} ms`).join(", ")}`);
    },
  };
}

function read(file: string): { beganAt: number; ms: number }[] {
  try {
    return readFileSync(file, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as { beganAt: number; ms: number });
  } catch {
    // No stall was logged.
    return [];
  }
}
