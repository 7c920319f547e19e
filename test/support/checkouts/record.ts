import { createHash } from "node:crypto";
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { codeOf } from "../../../src/lib/errors.ts";

/**
 * Records everything below a folder that a change would show in: kind, mode, owner, inode, links, time and content of each
 * path. Leaves out whatever is removed meanwhile, such as a worktree that IO no longer needs.
 */
export function record(folder: string): Record<string, string> {
  const found: Record<string, string> = {};
  const waiting = [""];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    try {
      recordOne(folder, at, found, waiting);
    } catch (error) {
      if (codeOf(error) !== "ENOENT") throw error;
      delete found[at];
    }
  }
  return found;
}

function recordOne(folder: string, at: string, found: Record<string, string>, waiting: string[]): void {
  const path = join(folder, at);
  const stats = lstatSync(path, { bigint: true });
  const head = [stats.mode.toString(8), stats.uid, stats.ino].join(" ");
  if (stats.isDirectory()) {
    found[at || "."] = head;
    waiting.push(...readdirSync(path).map((name) => join(at, name)));
  } else if (stats.isSymbolicLink()) found[at] = `${head} -> ${readlinkSync(path)}`;
  else if (!stats.isFile()) found[at] = head;
  else {
    const hash = createHash("sha256").update(readFileSync(path)).digest("hex");
    // A clone on the same disk may share object files. Any git that reads a shared index marks it as in use.
    const links = at.includes("/objects/") ? "" : stats.nlink;
    const time = at.includes("/sharedindex.") ? "" : stats.mtimeNs;
    found[at] = [head, links, time, stats.size, hash.slice(0, 16)].join(" ");
  }
}

/** The differences between two records: each path with its old and its new state. */
export function differences(
  before: Readonly<Record<string, string>>,
  after: Readonly<Record<string, string>>,
): [name: string, was: string | undefined, is: string | undefined][] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  return names.filter((name) => before[name] !== after[name]).map((name) => [name, before[name], after[name]]);
}
