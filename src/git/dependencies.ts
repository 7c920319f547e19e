import { randomBytes } from "node:crypto";
import { lstatSync, mkdirSync, readdirSync, readlinkSync, renameSync, rmSync, symlinkSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { codeOf, UserError } from "../lib/errors.ts";
import { exec } from "../process/exec.ts";
import { moved, relocate } from "./relocate.ts";
import type { Repo } from "./repository.ts";

/** What holds what a project has installed; a worktree without it cannot run the project's own checks. */
const INSTALLED = new Set([
  ...["node_modules", "bower_components", ".yarn", ".pnp.cjs", ".pnp.loader.mjs"],
  ...[".venv", "venv", "vendor", ".bundle", "Pods", "deps", "elm-stuff", ".dart_tool"],
]);
/** What tools write in place inside of it, so that it must not be shared. */
const CACHES = [".cache", ".vite", ".vitest"];

export interface Bringing {
  /** The top of the tree that has them, and of the one that is to have them. */
  from: string;
  to: string;
  /** Relative to the top. */
  names: readonly string[];
  /** Where they are made ready, on the same disk as the tree that is to have them. */
  scratch: string;
  /** Whether the two trees may share files, because neither is the user's own. */
  share: boolean;
  signal: AbortSignal;
}

/** What the checkout has installed and git ignores, the root's first. */
export function installedIn({ root, ignored }: Pick<Repo, "root" | "ignored">): string[] {
  const depth = (name: string) => name.split("/").length;
  return ignored
    .map((name) => name.replace(/\/$/, ""))
    .filter((name) => INSTALLED.has(basename(name)) || lstatSync(join(root, name, "pyvenv.cfg"), { throwIfNoEntry: false }))
    .sort((a, b) => depth(a) - depth(b));
}

/**
 * Brings what one tree has installed into another, each folder whole or not at all: what leads back into the first tree is
 * made to lead into the second. What an agent installs there does not reach the user's checkout, whose files are copied; file
 * systems that can share blocks do.
 */
export async function bring({ from, to, names, scratch, share, signal }: Bringing): Promise<void> {
  for (const [index, name] of names.entries()) {
    const [source, target] = [join(from, name), join(to, name)];
    if (is(target) || !is(source) || !is(dirname(target))) continue;
    if (lstatSync(source).isSymbolicLink()) {
      symlinkSync(moved(resolve(dirname(source), readlinkSync(source)), from, to), target);
      continue;
    }
    mkdirSync(scratch, { recursive: true, mode: 0o700 });
    const prefix = `installed-${basename(to)}-${index}-`;
    clearCut(scratch, prefix);
    const made = join(scratch, `${prefix}${randomBytes(4).toString("hex")}`);
    await copy(source, made, share, signal);
    if (share) for (const cache of CACHES) rmSync(join(made, cache), { recursive: true, force: true });
    await relocate(made, { from, to, at: target }, signal);
    renameSync(made, target);
  }
}

/** Takes away what an earlier life was cut off in. A program of its that still copies there never meets the copy that counts. */
function clearCut(scratch: string, prefix: string): void {
  for (const name of readdirSync(scratch).filter((each) => each.startsWith(prefix))) {
    try {
      rmSync(join(scratch, name), { recursive: true, force: true, maxRetries: 3 });
    } catch (error) {
      if (codeOf(error) !== "ENOTEMPTY") throw error;
      // It is still being written to, and goes with the rest of the folder when the run is over.
    }
  }
}

const is = (path: string) => lstatSync(path, { throwIfNoEntry: false }) !== undefined;

/** By the system's own program, which is several times as fast as we could be. The first way of copying that works is taken. */
async function copy(source: string, target: string, share: boolean, signal: AbortSignal): Promise<void> {
  const plain = process.platform === "darwin" ? [["-Rcp"], ["-Rp"]] : [["-a", "--reflink=auto"], ["-a"]];
  let said = "";
  for (const options of [...(share && process.platform !== "darwin" ? [["-al"]] : []), ...plain]) {
    const { code, stderr } = await exec("/bin/cp", [...options, "--", source, target], { signal });
    signal.throwIfAborted();
    if (code === 0) return;
    said = stderr.trim().slice(-300);
    rmSync(target, { recursive: true, force: true });
  }
  throw new UserError(`${source} could not be copied for the run: ${said}. Mend that (is the disk full?), then resume.`);
}
