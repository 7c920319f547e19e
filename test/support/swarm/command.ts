import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { packageRoot } from "../../../src/lib/paths.ts";

export interface Ended {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Runs `swarm` in a folder, as a user would. */
export function swarm(
  args: string[],
  cwd: string,
  env: NodeJS.ProcessEnv,
  { input = "", onStart }: { input?: string; onStart?: (child: ChildProcess) => void } = {},
): Promise<Ended> {
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
