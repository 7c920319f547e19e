import { createHash } from "node:crypto";
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";

/** Everything that a folder holds: each name with its kind, mode, links, and content. It follows nothing. */
export function fingerprint(folder: string): Record<string, string> {
  const found: Record<string, string> = {};
  const waiting = [""];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    const path = join(folder, at);
    const stats = lstatSync(path);
    // Clones of one disk share objects, which nobody ever writes.
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
