import { lstatSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { createBreath } from "../../lib/breath.ts";
import { codeOf } from "../../lib/errors.ts";
import { openFolder } from "../../lib/pinned/folder.ts";
import { eachEntryOf, entriesAt } from "../../lib/pinned/list.ts";
import { smallTextAt } from "../../lib/pinned/read.ts";
import { realOf } from "../../lib/real-path.ts";

/** Above this number, worktrees are protected together, by their parent folder. */
const MAX_SINGLE = 100;
/** How many entries are examined to find the repositories inside a folder. */
const MAX_ENTRIES = 300_000;
/** The repositories in a folder are cached for this multiple of the search time, so that large folders cost little. */
const CACHE_FACTOR = 10;
/** Large folders in which nobody keeps a repository with worktrees. */
const SKIPPED: ReadonlySet<string> = new Set(["node_modules", "objects", "refs", "logs", "lfs"]);

/**
 * Repositories' records of worktrees that are hidden in the sandbox. `git worktree prune` and `git gc` would take such a
 * worktree for deleted and erase its record, so commands may read these records but not write them.
 */
export function hiddenWorktrees(records: readonly string[], sees: (folder: string) => boolean): string[] {
  return [...new Set(records)].flatMap((folder) => {
    const hidden = entriesAt(folder)
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => join(folder, name))
      .filter((record) => {
        const marker = smallTextAt(join(record, "gitdir"))?.trim();
        return marker !== undefined && !sees(realOf(dirname(resolve(record, marker))));
      });
    return hidden.length > MAX_SINGLE ? [folder] : hidden;
  });
}

/** The folder where the nearest repository keeps its worktree records; the checkout may itself be a worktree. */
export function recordsAround(folder: string): string[] {
  for (let at = folder; ; at = dirname(at)) {
    const entry = lstatSync(join(at, ".git"), { throwIfNoEntry: false });
    if (entry?.isDirectory()) return [join(at, ".git", "worktrees")];
    if (entry?.isFile()) {
      const own = resolve(at, (smallTextAt(join(at, ".git")) ?? "").replace(/^gitdir:/, "").trim());
      const common = smallTextAt(join(own, "commondir"))?.trim();
      return [join(realOf(common === undefined ? own : resolve(own, common)), "worktrees")];
    }
    if (dirname(at) === at) return [];
  }
}

/**
 * Finds the worktree records of the repositories inside a folder: checkouts, submodules and bare ones. `cacheMs` is how long a
 * result is kept at least.
 */
export function createRecordSearch(cacheMs = 0) {
  const known = new Map<string, { until: number; records: Promise<string[]> }>();

  return function recordsInside(folder: string): Promise<string[]> {
    const began = performance.now();
    for (const [path, { until }] of known) if (began > until) known.delete(path);
    const remembered = known.get(folder);
    if (remembered) return remembered.records;
    const found = { until: Number.POSITIVE_INFINITY, records: search(folder) };
    known.set(folder, found);
    const ended = () => {
      const now = performance.now();
      found.until = now + Math.max(cacheMs, CACHE_FACTOR * (now - began));
    };
    found.records.then(ended, ended);
    return found.records;
  };
}

async function search(top: string): Promise<string[]> {
  const breathe = createBreath();
  const records: string[] = [];
  const folders = [top];
  let left = MAX_ENTRIES;
  // Breadth first: if there are too many, the deepest are skipped.
  for (let at = 0; at < folders.length && left > 0; at += 1) {
    const folder = folders[at]!;
    const names = new Set<string>();
    try {
      const open = openFolder(folder);
      try {
        for await (const entry of eachEntryOf(open, breathe)) {
          left -= 1;
          if (left <= 0) break;
          if (entry.name === "HEAD" || entry.name === "objects" || entry.name === "worktrees") names.add(entry.name);
          if (entry.isDirectory() && !SKIPPED.has(entry.name)) folders.push(join(folder, entry.name));
        }
      } finally {
        open.close();
      }
    } catch (error) {
      // It is gone, a link, or inaccessible, so git cannot use it either.
      if (!["ENOENT", "ENOTDIR", "ELOOP", "EACCES", "EPERM"].includes(codeOf(error) ?? "")) throw error;
    }
    if (names.size === 3) records.push(join(folder, "worktrees"));
  }
  return records;
}
