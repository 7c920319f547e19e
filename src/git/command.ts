import { setTimeout as sleep } from "node:timers/promises";
import { UserError } from "../lib/errors.ts";
import { plainEnvironment } from "../process/environment.ts";
import { type ExecResult, exec } from "../process/exec.ts";

export interface GitOptions {
  env?: Record<string, string>;
  input?: string;
  signal?: AbortSignal;
  maxOutput?: number;
}

const QUIET = [
  "-c",
  "core.fsmonitor=false",
  "-c",
  "core.hooksPath=/dev/null",
  "-c",
  "commit.gpgsign=false",
  "-c",
  "merge.verifySignatures=false",
  "-c",
  "gc.auto=0",
  "-c",
  "advice.detachedHead=false",
];
const DEADLINE_MS = 300_000;
const LOCK_TRIES = 30;

/** Runs git with an argument list, without the user's hooks, and waits for a lock that another git holds. */
export async function git(cwd: string, args: readonly string[], options: GitOptions = {}): Promise<ExecResult> {
  for (let tries = 1; ; tries += 1) {
    const result = await exec("git", [...QUIET, ...args], {
      cwd,
      env: { ...plainEnvironment(process.env), GIT_TERMINAL_PROMPT: "0", GIT_EDITOR: "true", LC_ALL: "C", ...options.env },
      deadlineMs: DEADLINE_MS,
      maxOutput: options.maxOutput ?? 200_000,
      ...(options.input !== undefined && { input: options.input }),
      ...(options.signal && { signal: options.signal }),
    });
    if (result.code === 0 || tries >= LOCK_TRIES || !/\.lock': File exists|Unable to create .*\.lock/.test(result.stderr))
      return result;
    await sleep(100);
  }
}

/** The output of a git command that has to work. */
export async function must(cwd: string, args: readonly string[], options: GitOptions = {}): Promise<string> {
  const result = await git(cwd, args, options);
  if (result.code === 0) return result.stdout.trim();
  const said = result.ending === "exited" ? (result.stderr.trim() || result.output.trim()).slice(-600) : result.ending;
  throw new UserError(`git ${args.slice(0, 3).join(" ")} failed in ${cwd}: ${said}`);
}
