import { type Dirent, readdirSync, statSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import type { Git } from "../git/command.ts";
import { type Breath, createBreath } from "../lib/breath.ts";
import { UserError, unavailable } from "../lib/errors.ts";
import type { Origin } from "./origin.ts";

/** The allowed protocols: web hosts, ssh, and folders that a person named. */
const FETCH_BY = ["https", "http", "ssh", "file"];

/** How git and ssh say that the host is at fault, and not the address. */
const UNREACHABLE =
  /unable to access '[^'\n]*': (?!the requested URL returned error: 4(?!08|29))|could not resolve host|connect to host \S+ port|connection (?:refused|timed out|reset|closed)|hung up unexpectedly|early EOF/i;

export interface CloneLimits {
  deadlineMs: number;
  maxBytes: number;
  /** Files and folders, without git's own. */
  maxEntries: number;
}

/** Clones the newest commit into `target` and returns its hash. Git prompts nobody and runs nothing from the repository. */
export async function clone(
  origin: Origin,
  target: string,
  limits: CloneLimits,
  git: Git,
  signal?: AbortSignal,
): Promise<string> {
  const folder = dirname(target);
  const common = {
    writable: [folder],
    env: { GIT_LFS_SKIP_SMUDGE: "1" },
    settings: ["filter.lfs.required=false"],
    fetchBy: FETCH_BY,
    readable: localFolder(origin.address),
  };

  const tooLarge = new AbortController();
  const done = new AbortController();
  const watching = watch(target, limits, done.signal, () => tooLarge.abort());
  const options = ["--depth", "1", "--single-branch", "--no-tags", "--no-recurse-submodules", "--quiet"];
  try {
    const cloned = await git.run(folder, ["clone", ...options, "--", origin.address, target], {
      ...common,
      deadlineMs: limits.deadlineMs,
      signal: signal ? AbortSignal.any([signal, tooLarge.signal]) : tooLarge.signal,
      maxOutput: 4_000,
    });
    if (tooLarge.signal.aborted) throw new UserError(`${origin.shown} is larger than a skill may be. Nothing was installed.`);
    if (cloned.ending === "not-started")
      throw unavailable('git is needed to install a skill and was not found. Install git, then try "git --version".');
    if (cloned.ending === "deadline")
      throw unavailable(
        `${origin.shown} did not arrive in ${Math.round(limits.deadlineMs / 1000)} s. Nothing was installed; try again later.`,
      );
    if (cloned.ending === "aborted") throw new UserError("The installation was stopped. Nothing was installed.");
    if (cloned.code !== 0)
      throw new UserError(`${origin.shown} could not be cloned: ${reason(cloned.stderr)} Nothing was installed.`, {
        ...(UNREACHABLE.test(cloned.stderr) && { trouble: "unavailable" }),
      });
  } finally {
    done.abort();
    await watching;
  }
  const head = await git.run(folder, ["-C", target, "rev-parse", "--verify", "HEAD"], { ...common, deadlineMs: 10_000 });
  const commit = head.stdout.trim();
  if (head.code !== 0 || !/^[0-9a-f]{40,64}$/.test(commit))
    throw new UserError(`${origin.shown} has no commit yet. Nothing was installed.`);
  return commit;
}

function reason(stderr: string): string {
  const lines = stderr
    .split("\n")
    .map((line) => line.replace(/^(?:fatal|error|remote):\s*/, "").trim())
    .filter((line) => line !== "" && !line.startsWith("Cloning into"));
  const text = lines.slice(0, 2).join(" ").slice(0, 300) || "git gave no reason";
  return /could not read Username|Authentication failed|Permission denied/i.test(text)
    ? `${text}. It does not exist, or needs a login that git has not got.`
    : `${text}.`;
}

/** Calls back when more has arrived than a skill may have, while git is still running. */
async function watch(folder: string, { maxBytes, maxEntries }: CloneLimits, signal: AbortSignal, onTooLarge: () => void) {
  while (!signal.aborted) {
    const weight: Allowance = { bytes: 2 * maxBytes, entries: 2 * maxEntries };
    await subtractArrived(folder, weight, createBreath(), signal);
    if (weight.bytes < 0 || weight.entries < 0) return onTooLarge();
    await sleep(250, undefined, { signal }).catch(() => undefined);
  }
}

/** What may still arrive. */
interface Allowance {
  bytes: number;
  entries: number;
}

/** Subtracts what has arrived so far; what vanishes meanwhile counts as nothing. */
async function subtractArrived(folder: string, left: Allowance, breathe: Breath, signal: AbortSignal): Promise<void> {
  let entries: Dirent[];
  try {
    entries = readdirSync(folder, { withFileTypes: true });
  } catch {
    // Git creates and renames folders while it works.
    return;
  }
  for (const entry of entries) {
    if (signal.aborted || left.bytes < 0 || left.entries < 0) return;
    left.entries -= 1;
    const path = join(folder, entry.name);
    if (entry.isDirectory()) await subtractArrived(path, left, breathe, signal);
    else if (entry.isFile()) left.bytes -= statSync(path, { throwIfNoEntry: false })?.size ?? 0;
    await breathe();
  }
}

/** Where an address leads on this machine; nowhere for a remote one. */
function localFolder(address: string): string[] {
  try {
    return isAbsolute(address) ? [address] : [fileURLToPath(address)];
  } catch {
    return [];
  }
}
