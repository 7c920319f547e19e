import { setTimeout as sleep } from "node:timers/promises";
import { UserError } from "../lib/errors.ts";
import { plainEnvironment } from "../process/environment.ts";
import { type ExecResult, exec } from "../process/exec.ts";
import { unwrapped, type Wrap } from "../process/sandbox.ts";

export interface GitOptions {
  /** Variables besides the usual ones. */
  env?: NodeJS.ProcessEnv;
  /** What git gets to know of the environment, in place of everything that is no secret. */
  environment?: NodeJS.ProcessEnv;
  /** Settings besides the usual ones, as `name=value`. */
  settings?: readonly string[];
  /** Keeps git, which a repository's own settings can make start programs, from what those may not see. */
  wrap?: Wrap;
  /** Folders that git may write although it is wrapped. */
  writable?: readonly string[];
  input?: string;
  signal?: AbortSignal;
  deadlineMs?: number;
  maxOutput?: number;
}

const SETTINGS = [
  "core.fsmonitor=false",
  "core.hooksPath=/dev/null",
  "commit.gpgsign=false",
  "merge.verifySignatures=false",
  "gc.auto=0",
  "advice.detachedHead=false",
  "advice.addEmbeddedRepo=false",
];
/** Nobody is asked anything, and what went wrong is read from git's own words. */
const SILENT = { GIT_TERMINAL_PROMPT: "0", GIT_EDITOR: "true", LC_ALL: "C" };
const DEADLINE_MS = 300_000;
const LOCK_TRIES = 30;

/** Runs git with an argument list, without the user's hooks, and waits for a lock that another git holds. Nobody else starts git. */
export async function git(cwd: string, args: readonly string[], options: GitOptions = {}): Promise<ExecResult> {
  const { wrap = unwrapped, writable, settings = [], environment = plainEnvironment(process.env) } = options;
  const named = [...SETTINGS, ...settings].flatMap((setting) => ["-c", setting]);
  for (let tries = 1; ; tries += 1) {
    const [program, ...rest] = await wrap(["git", ...named, ...args], cwd, writable && { writable });
    const result = await exec(program, rest, {
      cwd,
      env: { ...environment, ...SILENT, ...options.env },
      deadlineMs: options.deadlineMs ?? DEADLINE_MS,
      maxOutput: options.maxOutput ?? 200_000,
      ...(options.input !== undefined && { input: options.input }),
      ...(options.signal && { signal: options.signal }),
    });
    if (result.code === 0 || tries >= LOCK_TRIES || !isLocked(result.stderr)) return result;
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

/** Whether git found that another of its kind was at work. */
function isLocked(said: string): boolean {
  return said.includes(".lock': File exists") || (said.includes("Unable to create ") && said.includes(".lock"));
}
