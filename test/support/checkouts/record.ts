import { createHash } from "node:crypto";
import { lstatSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";

/** Everything below a folder that a change would show in: kind, mode, owner, inode, links, time and content of each name. */
export function record(folder: string): Record<string, string> {
  const found: Record<string, string> = {};
  const waiting = [""];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
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
      // Objects may be shared with a clone on the same disk. Whichever git reads a shared index marks it as in use.
      const links = at.includes("/objects/") ? "" : stats.nlink;
      const time = at.includes("/sharedindex.") ? "" : stats.mtimeNs;
      found[at] = [head, links, time, stats.size, hash.slice(0, 16)].join(" ");
    }
  }
  return found;
}

/** What differs between two records: each name with what it was and what it is. */
export function differences(
  before: Readonly<Record<string, string>>,
  after: Readonly<Record<string, string>>,
): [name: string, was: string | undefined, is: string | undefined][] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  return names.filter((name) => before[name] !== after[name]).map((name) => [name, before[name], after[name]]);
}
