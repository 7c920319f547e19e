import { createHash } from "node:crypto";
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";

/**
 * Describes everything in a folder: each path with its mode, its link count, and its content or target. Follows no symbolic
 * links.
 */
export function fingerprint(folder: string): Record<string, string> {
  const found: Record<string, string> = {};
  const waiting = [""];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    const path = join(folder, at);
    const stats = lstatSync(path);
    // Clones on the same disk share object files by hard links, and nobody ever writes to them.
    const links = stats.isDirectory() || at.includes("/objects/") ? "" : stats.nlink;
    const head = `${stats.mode.toString(8)} ${links}`;
    if (stats.isDirectory()) {
      found[at || "."] = head;
      waiting.push(...readdirSync(path).map((name) => join(at, name)));
    } else if (stats.isSymbolicLink()) found[at] = `${head} ${readlinkSync(path)}`;
    else found[at] = `${head} ${createHash("sha256").update(readFileSync(path)).digest("hex")}`;
  }
  return found;
}
