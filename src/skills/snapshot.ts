import { createHash } from "node:crypto";
import { type BigIntStats, readlinkSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { type Folder, named, withFolder } from "../lib/pinned/folder.ts";
import { entriesOf, statsOf } from "../lib/pinned/list.ts";
import { readPlain } from "../lib/pinned/read.ts";
import { headOf, safeLine } from "./manifest.ts";

/** Everything in a skill's folder at one moment. */
export interface Snapshot {
  /** Covers names, modes and contents; undefined if the folder cannot be read as a whole. */
  hash?: string;
  /** Why it cannot. */
  problem?: string;
  files: string[];
  /** The beginnings of its `SKILL.md` and those in its `agents` folder, as they were hashed. */
  texts: ReadonlyMap<string, string>;
}

const MAX_DEPTH = 32;
const TEXT = /^(?:agents\/[^/]+\/)?SKILL\.md$/;
/** A file this young may change again within one tick of the file system's clock, so its stamp is not reliable yet. */
const RACY_NS = 2_000_000_000n;

interface Item {
  path: string;
  stamp: string;
  /** Whether the stamp is old enough to be reliable. */
  settled: boolean;
  /** A link's target. */
  target?: string;
}

interface Known {
  /** Undefined if one of them is not reliable yet. */
  stamps: string | undefined;
  snapshot: Snapshot;
  digests: Map<string, { stamp: string; digest: string }>;
}

/** Takes snapshots of folders. A file with the same size, times and inode as before is not read again. */
export function createSnapshots(limits: { maxBytes: number; maxFiles: number }, now: () => number = Date.now) {
  const known = new Map<string, Known>();

  return (folder: string): Snapshot => {
    const listed = list(folder, limits, now());
    if ("problem" in listed) return { problem: listed.problem, files: [], texts: new Map() };
    const { items } = listed;
    const stamps = items.map(({ path, stamp }) => `${path}\0${stamp}`).join("\n");
    const before = known.get(folder);
    if (before?.stamps === stamps) return before.snapshot;
    const taken = take(folder, items, before?.digests ?? new Map(), limits.maxBytes);
    const isLasting = items.every(({ settled }) => settled);
    known.set(folder, { stamps: isLasting ? stamps : undefined, ...taken });
    return taken.snapshot;
  };
}

function take(folder: string, items: readonly Item[], before: Known["digests"], maxBytes: number): Omit<Known, "stamps"> {
  const hash = createHash("sha256");
  const texts = new Map<string, string>();
  const digests: Known["digests"] = new Map();
  const files = items.map(({ path }) => path);
  for (const { path, stamp, settled, target } of items) {
    if (target !== undefined) {
      hash.update(`link\0${path}\0${target}\n`);
      continue;
    }
    const seen = before.get(path);
    const isText = TEXT.test(path);
    const old = seen?.stamp === stamp && !isText ? seen.digest : undefined;
    const read = old === undefined ? contentOf(folder, path, maxBytes) : undefined;
    const digest = old ?? (read && createHash("sha256").update(read).digest("hex"));
    if (digest === undefined)
      return { digests, snapshot: { problem: `${safeLine(path, 200)} changed while it was read`, files, texts } };
    if (read && isText) texts.set(path, headOf(read));
    if (settled) digests.set(path, { stamp, digest });
    hash.update(`file\0${path}\0${stamp.split(" ")[0]}\0${digest}\n`);
  }
  return { digests, snapshot: { hash: hash.digest("hex"), files, texts } };
}

function contentOf(root: string, path: string, maxBytes: number): Buffer | undefined {
  try {
    return withFolder(dirname(join(root, path)), (folder) => {
      const read = readPlain(folder, path.slice(path.lastIndexOf("/") + 1), maxBytes);
      return "bytes" in read ? read.bytes : undefined;
    });
  } catch {
    // One of its folders is gone or became a link.
    return undefined;
  }
}

/** Every file and link of a folder, ordered by name; git's own folder at its top is not part of a skill. */
function list(
  root: string,
  { maxBytes, maxFiles }: { maxBytes: number; maxFiles: number },
  now: number,
): { items: Item[] } | { problem: string } {
  const items: Item[] = [];
  let bytes = 0n;
  let folders = 0;
  let problem: string | undefined;
  const visit = (folder: Folder, below: string, depth: number): void => {
    folders += 1;
    if (folders > maxFolders(maxFiles)) problem = `it has more than ${maxFolders(maxFiles)} folders`;
    for (const { name } of problem === undefined ? entriesOf(folder).sort((a, b) => (a.name < b.name ? -1 : 1)) : []) {
      if (problem !== undefined) return;
      if (below === "" && name === ".git") continue;
      const path = `${below}${name}`;
      const stats = statsOf(folder, name);
      if (!stats) problem = `${safeLine(path, 200)} changed while it was looked at`;
      else if (stats.isDirectory() && depth < MAX_DEPTH)
        withFolder(join(folder.path, name), (inner) => visit(inner, `${path}/`, depth + 1));
      else if (stats.isFile()) items.push({ path, ...stampOf(stats, now) });
      else if (stats.isSymbolicLink())
        items.push({ path, ...stampOf(stats, now), target: named(folder, () => readlinkSync(folder.entry(name))) });
      else problem = `${safeLine(path, 200)} is neither a file nor a folder; take it away`;
      bytes += stats?.isFile() ? stats.size : 0n;
      const last = items.at(-1);
      if (last?.target !== undefined && leadsOut(root, last.path, last.target))
        problem = `${safeLine(path, 200)} is a link that leads out of the skill's folder; put the file itself there`;
      if (items.length > maxFiles || bytes > BigInt(maxBytes))
        problem = `it is larger than ${maxFiles} files or ${Math.round(maxBytes / 1_000_000)} MB`;
    }
  };
  try {
    withFolder(root, (folder) => visit(folder, "", 0));
  } catch {
    // One of its folders is gone, became a link, or is unreadable.
    return { problem: "a folder of it cannot be read" };
  }
  return problem === undefined ? { items } : { problem };
}

/** Each folder costs a visit, and a repository of a few kilobytes can hold any number of them. */
const maxFolders = (maxFiles: number) => Math.ceil(maxFiles / 5) + 100;

function stampOf(stats: BigIntStats, now: number): Pick<Item, "stamp" | "settled"> {
  const { mode, size, mtimeNs, ctimeNs, ino } = stats;
  const runs = (mode & 0o111n) === 0n ? "-" : "x";
  return { stamp: `${runs} ${size} ${mtimeNs} ${ctimeNs} ${ino}`, settled: ctimeNs < BigInt(now) * 1_000_000n - RACY_NS };
}

/** By the text of the link: what a link inside leads to is part of the folder too, and is checked itself. */
function leadsOut(root: string, path: string, target: string): boolean {
  const way = relative(root, resolve(root, dirname(path), target));
  return way === "" || way === ".." || way.startsWith("../") || way === ".git" || way.startsWith(".git/");
}
