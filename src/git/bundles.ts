import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { UserError } from "../lib/errors.ts";
import { withFolder } from "../lib/pinned/folder.ts";
import { readPlainAt, tellAbsent } from "../lib/pinned/read.ts";
import { replaceFile } from "../lib/pinned/write.ts";
import { realOf } from "../lib/real-path.ts";
import type { Git } from "./command.ts";
import { isAncestor } from "./refs.ts";

/** A repository that commits are exported from or imported into. */
export interface BundleTarget {
  git: Git;
  /** Its checkout, or the repository itself if it has none. */
  root: string;
  /** A folder for temporary files, created if missing. */
  scratch: string;
}

export interface Wanted {
  commit: string;
  /** Commits that the other side already has. */
  known?: readonly string[];
}

const MAX_BYTES = 512 * 1024 * 1024;
const NOTHING = "0".repeat(40);
const Commit = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;

/** Bundles a commit with the history that the other side lacks; undefined if it lacks nothing. */
export async function makeBundle(place: BundleTarget, { commit, known = [] }: Wanted): Promise<Uint8Array | undefined> {
  if (known.includes(commit)) return undefined;
  return withScratch(place, async ({ git, root }, file) => {
    const ref = `refs/io/bundle/${randomBytes(8).toString("hex")}`;
    await git.must(root, ["update-ref", ref, commit]);
    try {
      await git.must(root, ["bundle", "create", "-q", file, ref, ...known.map((each) => `^${each}`)]);
    } finally {
      await git.run(root, ["update-ref", "-d", ref]);
    }
    const read = readPlainAt(file, MAX_BYTES);
    if ("absent" in read) throw new UserError(`What is to be sent to a worker ${tellAbsent(read.absent)}.`);
    return read.bytes;
  });
}

/**
 * Imports a commit from a bundle under a new ref. Throws if the bytes are not a complete bundle, do not contain the promised
 * commit, or if that is not based on the expected one.
 */
export async function takeBundle(
  place: BundleTarget,
  bytes: Uint8Array,
  { commit, base, ref, trusted = false }: { commit: string; base?: string; ref: string; trusted?: boolean },
): Promise<void> {
  if (!Commit.test(commit)) throw refused("it names no commit");
  await withScratch(place, async ({ git, root, scratch }, file) => {
    withFolder(realOf(scratch), (folder) =>
      replaceFile(folder, file.slice(file.lastIndexOf("/") + 1), bytes, { durable: false }),
    );
    // Old histories can contain objects that today's git would reject in new commits.
    const settings = trusted ? [] : ["transfer.fsckObjects=true", "fetch.fsckObjects=true"];
    const taken = await git.run(root, ["bundle", "unbundle", file], { settings });
    if (taken.code !== 0) throw refused("it is damaged, or stands on commits that are not here");
    if (!taken.stdout.split("\n").some((line) => line.startsWith(`${commit} `))) throw refused("it brings another commit");
    if (base !== undefined && !(await isAncestor(git, root, base, commit)))
      throw refused("its commit does not stand on the one that the work began from");
    await git.must(root, ["update-ref", ref, commit, NOTHING]);
  });
}

const refused = (why: string) => new UserError(`A worker's result is refused: ${why}. Nothing was imported.`);

async function withScratch<T>(place: BundleTarget, work: (place: BundleTarget, file: string) => Promise<T>): Promise<T> {
  if (!existsSync(place.scratch)) mkdirSync(place.scratch, { recursive: true, mode: 0o700 });
  const file = join(realOf(place.scratch), `${randomBytes(8).toString("hex")}.bundle`);
  try {
    return await work({ ...place, git: place.git.with({ writable: [place.scratch] }) }, file);
  } finally {
    rmSync(file, { force: true });
  }
}
