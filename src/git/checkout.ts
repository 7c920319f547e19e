import { rmSync } from "node:fs";
import { join } from "node:path";
import { statsAt } from "../lib/stats-at.ts";
import type { Git } from "./command.ts";

/** One of the user's checkouts. */
export interface Checkout {
  git: Git;
  root: string;
  /** Git's private folder for this checkout. */
  gitDir: string;
}

/** The checkout's current commit and the target commit. */
export interface Move {
  from: string;
  to: string;
}

export interface MovedFile {
  file: string;
  inFrom: boolean;
  /** The state of a file: as in either commit, half-written, or changed by somebody else. */
  state: "from" | "to" | "cut off" | "other";
}

const MAX_OUTPUT = 50_000_000;
const LINK = "160000";

/** Compares the checkout's files with two commits where those differ; `forget` deletes the temporary indexes. */
export async function surveyMove(
  place: Checkout,
  { from, to }: Move,
): Promise<{ files: MovedFile[]; indexOfFrom: string; forget: () => void }> {
  const { git, root, gitDir } = place;
  const changes = changesIn(await git.must(root, ["diff-tree", "-r", "-z", "--no-renames", from, to], { maxOutput: MAX_OUTPUT }));
  const indexOf = (commit: string) => join(gitDir, `swarm-move-${commit.slice(0, 12)}`);
  const [was, becomes, hidden] = await Promise.all([
    compare(
      place,
      indexOf(from),
      changes.flatMap(({ file, from: entry }) => (entry ? [{ file, entry }] : [])),
    ),
    compare(
      place,
      indexOf(to),
      changes.flatMap(({ file, to: entry }) => (entry ? [{ file, entry }] : [])),
    ),
    notCheckedOut(git, root),
  ]);
  const stateOf = ({ file, from: entry }: Change): MovedFile["state"] => {
    if (hidden.has(file)) return "from";
    const there = statsAt(join(root, file));
    const isFolder = there?.isDirectory() && changes.some((other) => other.file.startsWith(`${file}/`));
    if (entry ? was.has(file) : !there || isFolder) return "from";
    if (becomes.has(file)) return "to";
    // Git deletes a file before rewriting it, and creates it empty.
    return !there || there.size === 0 ? "cut off" : "other";
  };
  return {
    files: changes.map((change) => ({ file: change.file, inFrom: change.from !== undefined, state: stateOf(change) })),
    indexOfFrom: indexOf(from),
    forget: () => {
      for (const commit of [from, to]) rmSync(indexOf(commit), { force: true });
    },
  };
}

interface Change {
  file: string;
  /** Mode and hash, if the commit contains the file. */
  from: string | undefined;
  to: string | undefined;
}

/** Without submodules: git does not move their content. */
function changesIn(raw: string): Change[] {
  const parts = raw.split("\0");
  const changes: Change[] = [];
  for (let at = 0; at + 1 < parts.length; at += 2) {
    const [before = "", after = "", was = "", becomes = ""] = parts[at]!.slice(1).split(" ");
    const entry = (mode: string, hash: string) => (/^0+$/.test(mode) ? undefined : `${mode} ${hash}`);
    if (before !== LINK && after !== LINK)
      changes.push({ file: parts[at + 1]!, from: entry(before, was), to: entry(after, becomes) });
  }
  return changes;
}

/** Which of these files match exactly, compared through a temporary index. */
async function compare(
  { git, root }: Checkout,
  index: string,
  entries: readonly { file: string; entry: string }[],
): Promise<Set<string>> {
  rmSync(index, { force: true });
  const env = { GIT_INDEX_FILE: index };
  const input = entries.map(({ file, entry }) => `${entry}\t${file}\0`).join("");
  await git.must(root, ["update-index", "-z", "--index-info"], { env, input });
  await git.run(root, ["update-index", "-q", "--refresh"], { env });
  const differing = await git.must(root, ["diff-files", "--name-only", "-z"], { env, maxOutput: MAX_OUTPUT });
  const others = new Set(differing.split("\0"));
  return new Set(entries.map(({ file }) => file).filter((file) => !others.has(file)));
}

/** The files that a sparse checkout excludes. */
async function notCheckedOut(git: Git, root: string): Promise<Set<string>> {
  const sparse = await git.run(root, ["config", "--type=bool", "core.sparseCheckout"]);
  if (sparse.stdout.trim() !== "true") return new Set();
  const listed = await git.must(root, ["ls-files", "-t", "-z"], { maxOutput: MAX_OUTPUT });
  return new Set(
    listed
      .split("\0")
      .filter((line) => line.startsWith("S "))
      .map((line) => line.slice(2)),
  );
}
