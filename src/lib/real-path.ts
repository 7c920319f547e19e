import { lstatSync, readlinkSync, realpathSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { codeOf } from "./errors.ts";

/** A path as a model spells it, made absolute: `~` is the home folder, anything relative stands in the folder. */
export function locate(path: string, cwd: string): string {
  const spelled = path === "~" || path.startsWith("~/") ? join(homedir(), path.slice(1)) : path;
  return resolve(cwd, spelled);
}

/** The path with every link followed, also when its end does not exist yet. */
export function realOf(path: string, links = 0): string {
  try {
    return realpathSync.native(path);
  } catch (error) {
    // Not there yet, or not to be looked into: the part that exists decides.
    if (dirname(path) === path || codeOf(error) === "ELOOP" || links > 40) return path;
  }
  const here = join(realOf(dirname(path), links), basename(path));
  const target = linkOf(here);
  return target === undefined ? here : realOf(resolve(dirname(here), target), links + 1);
}

function linkOf(path: string): string | undefined {
  try {
    return lstatSync(path).isSymbolicLink() ? readlinkSync(path) : undefined;
  } catch {
    // It does not exist, so it is no link.
    return undefined;
  }
}
