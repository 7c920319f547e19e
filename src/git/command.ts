import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { diskFull, saysFull } from "../lib/disk-room.ts";
import { UserError } from "../lib/errors.ts";
import { realOf } from "../lib/real-path.ts";
import { createTurnTaking } from "../lib/turn-taking.ts";
import { isWithin } from "../lib/within.ts";
import { type ExecResult, exec, notStarted } from "../process/exec.ts";
import type { FoundProgram } from "../process/programs.ts";
import type { SandboxProfile, Wrap } from "../process/sandbox.ts";
import type { Shells } from "../process/shells.ts";
import { FIXED_ENVIRONMENT, FIXED_SETTINGS } from "./settings.ts";
import type { UserSettings } from "./user-settings.ts";

export interface GitOptions {
  /** Extra variables. */
  env?: NodeJS.ProcessEnv;
  /** Extra settings, as `name=value`. */
  settings?: readonly string[];
  /** Folders that git must write. */
  writable?: readonly string[];
  /** Other folders that git must read. */
  readable?: readonly string[];
  /** The allowed transports for fetching; usually none. */
  fetchBy?: readonly string[];
  /** A script of `scripts.ts` that runs the command and more in one process. */
  script?: string;
  input?: string;
  /** Runs one at a time per folder, because git fails on another command's unfinished work. */
  alone?: boolean;
  signal?: AbortSignal;
  deadlineMs?: number;
  maxOutput?: number;
}

/** The only way to run git: sandboxed, without the user's settings, and without programs that a repository's settings name. */
export interface Git {
  /** Runs git with an argument list, waiting for another git's lock. Never rejects. */
  run(cwd: string, args: readonly string[], options?: GitOptions): Promise<ExecResult>;
  /** The output of a command that must succeed. */
  must(cwd: string, args: readonly string[], options?: GitOptions): Promise<string>;
  /** The same git, with more writable folders or variables. */
  with(more: Pick<GitOptions, "writable" | "env">): Git;
  /** The default committer. */
  user(): Promise<Pick<UserSettings, "name" | "email">>;
  /** Whether a folder is, contains or is inside the data folder: no repository there is used. */
  isOwn(folder: string): boolean;
}

export interface GitDeps {
  program: () => FoundProgram;
  wrap: Wrap;
  /** Persistent shells for commands without network, where there is a sandbox; otherwise each command is started directly. */
  shells?: Shells;
  /** The environment for git. */
  environment: () => NodeJS.ProcessEnv;
  user: Promise<UserSettings>;
  /** The data folder, which no writable folder of git may expose again. */
  home: string;
}

const DEADLINE_MS = 300_000;
const LOCK_TRIES = 30;

export function createGit({ program, wrap, shells, environment, user, home }: GitDeps): Git {
  const dataFolder = realOf(home);
  const holdsData = (folder: string) => isWithin(folder, dataFolder);
  const inTurn = createTurnTaking();
  const isSpelledInside = (folder: string) => [home, dataFolder].some((data) => isWithin(data, resolve(folder)));

  async function run(cwd: string, args: readonly string[], options: GitOptions): Promise<ExecResult> {
    const found = program();
    if (found.path === undefined) return notStarted(found.why);
    const writable = (options.writable ?? []).map((folder) => realOf(folder));
    const shown = writable.find(holdsData);
    if (shown !== undefined) return notStarted(`${shown} holds IO's data folder, so git is not let near it`);
    const led = (options.writable ?? []).find((folder) => isWithin(dataFolder, realOf(folder)) && !isSpelledInside(folder));
    if (led !== undefined) return notStarted(`${led} leads into IO's data folder, so git is not let near it`);
    const { always, readable, fetching, fetchingBy } = await user;
    const { fetchBy = [], settings = [] } = options;
    const fetches = fetchBy.length > 0;
    const all = [...always, ...FIXED_SETTINGS, ...(fetches ? fetching : []), ...settings];
    // Git reads the folder it runs in, and writes there only if that is listed.
    const inside = writable.find((folder) => isWithin(folder, realOf(cwd)));
    const place = inside ?? cwd;
    const access = inside === undefined ? "read" : "write";
    const seen = [...readable, ...(options.readable ?? [])];
    const profile: SandboxProfile = { place, writable, readable: seen, network: fetches, access, closed: !fetches };
    const env = {
      ...environment(),
      ...FIXED_ENVIRONMENT,
      ...asEnvironment(all),
      GIT_ALLOW_PROTOCOL: fetchBy.join(":"),
      ...(fetches && fetchingBy),
    };
    const limits = {
      deadlineMs: options.deadlineMs ?? DEADLINE_MS,
      maxOutput: options.maxOutput ?? 200_000,
      ...(options.input !== undefined && { input: options.input }),
      ...(options.signal && { signal: options.signal }),
    };
    const command = [found.path, "--no-pager", ...args] as const;
    const argv = options.script ? (["/bin/sh", "-c", options.script, found.path, ...command] as const) : command;
    const alone = async () => {
      const [file, ...rest] = await wrap(argv, cwd, profile);
      return exec(file, rest, { cwd, env: { ...env, ...options.env }, ...limits });
    };
    const inShell = async () =>
      fetches ? undefined : shells?.run({ argv, cwd, place, profile, env, also: options.env, ...limits });
    for (let tries = 1; ; tries += 1) {
      const result = await inShell()
        .then((ran) => ran ?? alone())
        .catch((error: unknown) => notStarted(whyRefused(error)));
      // A failed write says nothing about the repository.
      if (result.code !== 0 && saysFull(result.stderr))
        throw diskFull(`git ${args.slice(0, 3).join(" ")} failed in ${cwd}: ${whyFailed(result)}`);
      if (result.code === 0 || tries >= LOCK_TRIES || !isLocked(result.stderr)) return result;
      await sleep(100);
    }
  }

  const withMore = (base: Pick<GitOptions, "writable" | "env">): Git => {
    const merged = (options: Pick<GitOptions, "writable" | "env"> = {}) => ({
      writable: [...new Set([...(base.writable ?? []), ...(options.writable ?? [])])],
      env: { ...base.env, ...options.env },
    });
    const own = (cwd: string, args: readonly string[], options: GitOptions = {}) => {
      const work = () => run(cwd, args, { ...options, ...merged(options) });
      return options.alone ? inTurn(cwd, work) : work();
    };
    return {
      run: own,
      async must(cwd, args, options) {
        const result = await own(cwd, args, options);
        if (result.code === 0) return result.stdout.trim();
        throw new UserError(`git ${args.slice(0, 3).join(" ")} failed in ${cwd}: ${whyFailed(result)}`);
      },
      with: (more) => withMore(merged(more)),
      user: async () => user,
      isOwn(folder) {
        const real = realOf(folder);
        return holdsData(real) || isWithin(dataFolder, real);
      },
    };
  };
  return withMore({});
}

/** Passes settings as variables; like those on the command line, they override a repository's. */
function asEnvironment(settings: readonly string[]): NodeJS.ProcessEnv {
  const pairs = settings.flatMap((setting, index) => {
    const at = setting.indexOf("=");
    return [
      [`GIT_CONFIG_KEY_${index}`, setting.slice(0, at)],
      [`GIT_CONFIG_VALUE_${index}`, setting.slice(at + 1)],
    ];
  });
  return { ...Object.fromEntries(pairs), GIT_CONFIG_COUNT: String(settings.length) };
}

/** The sandbox is not available, or it hides the folder. */
function whyRefused(error: unknown): string {
  if (error instanceof UserError) return error.message;
  throw error;
}

function whyFailed({ ending, stderr, output }: ExecResult): string {
  if (ending === "not-started") return stderr;
  return ending === "exited" ? (stderr.trim() || output.trim()).slice(-600) : ending;
}

/** Whether git failed because another git was running. */
function isLocked(said: string): boolean {
  return said.includes(".lock': File exists") || (said.includes("Unable to create ") && said.includes(".lock"));
}
