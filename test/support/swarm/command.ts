import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { readDaemonFile } from "../../../src/home/daemon-file.ts";
import { packageRoot } from "../../../src/lib/package-root.ts";
import { endDaemonOf } from "../daemon.ts";

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** A daemon that was started by a command keeps running for a moment, in case another command follows. */
function endDaemonAfterTest(home: string): void {
  // A daemon that was already running belongs to whoever started it.
  if (!readDaemonFile(join(home, "daemon.json"))) onTestFinished(() => endDaemonOf(home));
}

/** Runs `swarm` in a folder, as a user would. */
export function swarm(
  args: string[],
  cwd: string,
  env: NodeJS.ProcessEnv,
  { input = "", onStart }: { input?: string; onStart?: (child: ChildProcess) => void } = {},
): Promise<Ended> {
  endDaemonAfterTest(env.IO_HOME!);
  return new Promise((done) => {
    const child = spawn(process.execPath, [join(packageRoot, "bin", "swarm.js"), ...args], { cwd, env });
    onStart?.(child);
    const ended: Ended = { code: null, stdout: "", stderr: "" };
    child.stdout.on("data", (chunk) => {
      ended.stdout += chunk;
    });
    child.stderr.on("data", (chunk) => {
      ended.stderr += chunk;
    });
    child.once("close", (code) => done({ ...ended, code }));
    child.stdin.end(input);
  });
}
