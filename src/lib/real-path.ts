import { lstatSync, readlinkSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join, resolve, sep } from "node:path";
import { codeOf } from "./errors.ts";

/** Makes a model's path absolute: `~` is the home folder, relative paths start in the given folder. */
export function locate(path: string, cwd: string): string {
  const spelled = path === "~" || path.startsWith("~/") ? join(homedir(), path.slice(1)) : path;
  return resolve(cwd, spelled);
}

/** Resolves every link in a path, also if its end does not exist yet. */
export function realOf(path: string, links = 0): string {
  try {
    return realpathSync.native(path);
  } catch (error) {
    // Missing or inaccessible: the existing part decides.
    if (dirname(path) === path || codeOf(error) === "ELOOP" || links > 40) return path;
  }
  // From the top down, so that a long path of missing folders costs one lookup and not one each.
  const parts = path.split(sep);
  for (let count = 2; count <= parts.length; count += 1) {
    const here = parts.slice(0, count).join(sep);
    const kind = kindOf(here);
    if (kind === "folder") continue;
    const rest = parts.slice(count);
    const real = join(realOf(dirname(here), links), basename(here));
    const target = kind === "link" ? linkOf(real) : undefined;
    return target === undefined ? join(real, ...rest) : realOf(resolve(dirname(real), target, ...rest), links + 1);
  }
  return path;
}

function kindOf(path: string): "folder" | "link" | "other" | undefined {
  try {
    const stats = lstatSync(path, { throwIfNoEntry: false });
    return stats && (stats.isSymbolicLink() ? "link" : stats.isDirectory() ? "folder" : "other");
  } catch {
    // It cannot exist, or is inaccessible.
    return undefined;
  }
}

function linkOf(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch {
    // It disappeared or was replaced meanwhile, so it leads nowhere.
    return undefined;
  }
}
