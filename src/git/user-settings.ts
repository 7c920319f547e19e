import { lstatSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { exec } from "../process/exec.ts";
import type { FoundProgram } from "../process/programs.ts";
import { FIXED_ENVIRONMENT } from "./settings.ts";

/** The few user settings that git receives; all others are ignored, because a model may have written them. */
export interface UserSettings {
  /** The committer for repositories that name none. */
  name?: string;
  email?: string;
  /** As `name=value`, for every command. */
  always: readonly string[];
  /** Files outside a repository that these settings name. */
  readable: readonly string[];
  /** As `name=value`, for fetching. */
  fetching: readonly string[];
  /** Variables for fetching, from the environment that IO was started with. */
  fetchingBy: NodeJS.ProcessEnv;
}

export interface UserSettingsDeps {
  program: FoundProgram;
  /** The environment that IO was started with. */
  env: NodeJS.ProcessEnv;
}

type Entry = [name: string, value: string];

const READ_MS = 5_000;
const FETCHING_BY = ["GIT_SSH_COMMAND", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"];
const LFS: Readonly<Record<string, RegExp>> = {
  "filter.lfs.clean": /^git-lfs clean -- %f$/,
  "filter.lfs.smudge": /^git-lfs smudge (?:--skip )?-- %f$/,
  "filter.lfs.process": /^git-lfs filter-process(?: --skip)?$/,
  "filter.lfs.required": /^(?:true|false)$/,
};

/**
 * Reads the user's and the system's git settings once. Git only lists the files, outside any repository, and runs nothing that
 * they name.
 */
export async function readUserSettings({ program, env }: UserSettingsDeps): Promise<UserSettings> {
  const fetchingBy = Object.fromEntries(Object.entries(env).filter(([name]) => FETCHING_BY.includes(name)));
  if (program.path === undefined) return { always: [], readable: [], fetching: [], fetchingBy };
  const home = env.HOME || homedir();
  const files = [
    "/etc/gitconfig",
    join(env.XDG_CONFIG_HOME || join(home, ".config"), "git", "config"),
    join(home, ".gitconfig"),
  ].filter(isFile);
  const { path } = program;
  const entries = (await Promise.all(files.map((file) => listed(path, file, env)))).flat();
  const fetching = [...proxyIn(entries), ...addressesIn(env)];
  const excludes = excludesIn(entries, home);
  const always = [...alwaysIn(entries), `core.excludesFile=${excludes ?? "/dev/null"}`];
  return { ...identityIn(entries), always, readable: excludes === undefined ? [] : [excludes], fetching, fetchingBy };
}

async function listed(git: string, file: string, { PATH, HOME }: NodeJS.ProcessEnv): Promise<Entry[]> {
  const { code, stdout } = await exec(git, ["config", "--file", file, "--includes", "-z", "--list"], {
    cwd: "/",
    env: { PATH, HOME, ...FIXED_ENVIRONMENT },
    deadlineMs: READ_MS,
  });
  if (code !== 0) return [];
  return stdout.split("\0").flatMap((entry): Entry[] => {
    const at = entry.indexOf("\n");
    return at < 0 ? [] : [[entry.slice(0, at), entry.slice(at + 1)]];
  });
}

const last = (entries: readonly Entry[], name: string) => entries.findLast((entry) => entry[0] === name)?.[1];

function identityIn(entries: readonly Entry[]): Pick<UserSettings, "name" | "email"> {
  const [name, email] = [last(entries, "user.name"), last(entries, "user.email")].map((value) =>
    value !== undefined && /^[^\p{Cc}]{1,300}$/u.test(value) ? value : undefined,
  );
  return { ...(name && { name }), ...(email && { email }) };
}

function alwaysIn(entries: readonly Entry[]): string[] {
  const folders = entries.filter(([name, value]) => name === "safe.directory" && /^[^\p{Cc}]{0,4096}$/u.test(value));
  const lineEnds = [
    ["core.autocrlf", /^(?:true|false|input)$/],
    ["core.eol", /^(?:lf|crlf|native)$/],
  ] as const;
  const known = [...lineEnds, ...Object.entries(LFS)].flatMap(([name, allowed]) => {
    const value = last(entries, name);
    return value !== undefined && allowed.test(value) ? [`${name}=${value}`] : [];
  });
  return [...folders.map(([name, value]) => `${name}=${value}`), ...known];
}

/** Files that the user excludes from every repository must not be committed by IO. */
function excludesIn(entries: readonly Entry[], home: string): string | undefined {
  const named = last(entries, "core.excludesfile");
  const path = named === undefined ? join(home, ".config", "git", "ignore") : named.replace(/^~(?=\/)/, home);
  return isFile(path) ? path : undefined;
}

function proxyIn(entries: readonly Entry[]): string[] {
  const proxy = last(entries, "http.proxy");
  return proxy !== undefined && /^(?:https?|socks5h?|socks4a?):\/\/[\w.:[\]-]{1,300}\/?$/.test(proxy)
    ? [`http.proxy=${proxy}`]
    : [];
}

/** URL rewrites (`insteadOf`). Only from the environment, which no model can write: they decide where files come from. */
function addressesIn(env: NodeJS.ProcessEnv): string[] {
  const count = Math.min(Number(env.GIT_CONFIG_COUNT) || 0, 100);
  return Array.from(
    { length: count },
    (_, index): Entry => [env[`GIT_CONFIG_KEY_${index}`] ?? "", env[`GIT_CONFIG_VALUE_${index}`] ?? ""],
  )
    .filter(([name]) => /^url\.[^=\p{Cc}]{1,1000}\.insteadof$/iu.test(name))
    .map(([name, value]) => `${name}=${value}`);
}

function isFile(path: string): boolean {
  try {
    return lstatSync(path).isFile();
  } catch {
    // Missing or unreadable.
    return false;
  }
}
