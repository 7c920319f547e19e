import { basename, join } from "node:path";
import { readPlainAt } from "../lib/pinned/read.ts";
import { realOf } from "../lib/real-path.ts";
import type { Change, ChangedFolder, Entry, TurnChanges } from "../store/turn-changes.ts";
import { isSame, LARGEST } from "./entries.ts";
import type { Seen, ShadowIndex } from "./shadow-index.ts";

export interface AddDeps {
  index: ShadowIndex;
  /** The sizes of files before the effect, as the index recorded them. */
  sizes: ReadonlyMap<string, number>;
  /** Permissions before and after that git does not record. */
  permissions: ReadonlyMap<string, number>;
  after: ReadonlyMap<string, number>;
  /** Another owner that may have made a change. */
  claimed: (path: string) => string | undefined;
}

const REPOSITORY = "160000";
const MIXED = "somebody else changed it while this went on";
const CONVERTED = "git stores it in another form; git checkout brings its committed version back";

/** Adds one more effect to an owner's changes to each file. */
export async function addChanges(
  { files, place }: TurnChanges & { place: ChangedFolder },
  seen: readonly Seen[],
  { index, sizes, permissions, after, claimed }: AddDeps,
): Promise<TurnChanges["files"]> {
  const exact = await exactBefore(seen, index, sizes);
  const all: Record<string, Change> = { ...files };
  for (const one of seen) {
    const { path } = one;
    const known = all[path];
    const before = known ? known.before : withPermissions(exact.get(path) ?? one.before, permissions.get(path));
    const other = claimed(path);
    const kept =
      known?.kept ??
      (one.before?.mode === REPOSITORY || one.after?.mode === REPOSITORY
        ? "it is a repository of its own"
        : known && !isSame(known.after, one.before, place)
          ? MIXED
          : other !== undefined
            ? `${other} worked in the same folder at the same time`
            : !known && exact.get(path) === null
              ? CONVERTED
              : undefined);
    const change = { before, after: withPermissions(one.after, after.get(path)), ...(kept !== undefined && { kept }) };
    if (isSame(change.before, change.after, place) && kept === undefined) delete all[path];
    else all[path] = change;
  }
  return all;
}

const withPermissions = (entry: Entry | null, permissions: number | undefined): Entry | null =>
  entry && permissions !== undefined ? { ...entry, permissions } : entry;

/**
 * The exact bytes of files that the user's index stores in another form, such as with other line ends or in Git LFS. Such files
 * are found by their sizes; null if nobody knows the bytes.
 */
async function exactBefore(
  seen: readonly Seen[],
  index: ShadowIndex,
  sizes: ReadonlyMap<string, number>,
): Promise<Map<string, Entry | null>> {
  const exact = new Map<string, Entry | null>();
  const files = seen.flatMap(({ path, before }) => (before?.mode.startsWith("100") ? [{ path, before }] : []));
  if (files.length === 0) return exact;
  const lengths = await index.lengths([...new Set(files.map(({ before }) => before.oid))]);
  // An index records the size 0 for a file that was written at the same moment as the index.
  const doubtful = files.filter(({ path, before }) => {
    const size = sizes.get(path);
    return size !== undefined && size !== 0 && size !== lengths.get(before.oid);
  });
  if (doubtful.length === 0) return exact;
  for (const { path } of doubtful) exact.set(path, null);
  const out = await index.extractFiltered(doubtful.map(({ path, before }) => [path, before] as const)).catch(() => undefined);
  if (out === undefined) return exact;
  const found = doubtful.filter(({ path }) => {
    const read = readPlainAt(realOf(join(out, path)), LARGEST);
    return "bytes" in read && read.bytes.length === sizes.get(path) && basename(path) !== "" && !path.includes("\n");
  });
  const oids = await index.store(found.map(({ path }) => join(out, path)));
  found.forEach(({ path, before }, at) => {
    const oid = oids[at];
    if (oid !== undefined) exact.set(path, { mode: before.mode, oid });
  });
  return exact;
}
