import { join } from "node:path";
import type { Git } from "./command.ts";
import { releaseLocks } from "./locks.ts";
import { NAMELESS, type Repo } from "./repository.ts";

/** One commit on a branch's first-parent line. */
export interface LineCommit {
  commit: string;
  tree: string;
  parents: readonly string[];
  subject: string;
}

/** How many recent commits are read to learn a project's style. */
const SAMPLED_COMMITS = 200;
const MAX_OUTPUT = 5_000_000;

/** The messages of a project's latest commits, without merges. */
export async function latestMessages(git: Git, root: string, from: string): Promise<string[]> {
  const args = ["log", "-n", String(SAMPLED_COMMITS), "--no-merges", "--format=%B%x00", from];
  const { code, stdout } = await git.run(root, args, { maxOutput: MAX_OUTPUT });
  return code === 0
    ? stdout
        .split("\0")
        .map((message) => message.trim())
        .filter((message) => message !== "")
    : [];
}

/** The commits on a branch's first-parent line since a base, oldest first. */
export async function lineOf(git: Git, root: string, base: string, tip: string): Promise<LineCommit[]> {
  const format = "--format=%H%x00%T%x00%P%x00%s";
  const listed = await git.must(root, ["log", "--first-parent", "--reverse", format, `${base}..${tip}`], {
    maxOutput: MAX_OUTPUT,
  });
  return listed.split("\n").flatMap((line) => {
    const [commit, tree, parents, subject = ""] = line.split("\0");
    return commit && tree && parents !== undefined ? [{ commit, tree, parents: parents.split(" "), subject }] : [];
  });
}

/** The files that differ between two commits. */
export async function filesBetween(git: Git, root: string, from: string, to: string): Promise<string[]> {
  const { stdout } = await git.run(root, ["diff-tree", "-r", "--name-only", "--no-renames", "-z", from, to], {
    maxOutput: MAX_OUTPUT,
  });
  return stdout.split("\0").filter((file) => file !== "");
}

/** The committer in a repository, as `Name <address>`; undefined if none is configured. */
export async function committerOf({ git, root, identity }: Repo): Promise<string | undefined> {
  if (identity === NAMELESS) return undefined;
  const { code, stdout } = await git.run(root, [...identity, "var", "GIT_COMMITTER_IDENT"]);
  return code === 0 ? /^(.{1,600}>) \d+ [+-]\d{4}$/.exec(stdout.trim())?.[1] : undefined;
}

/** Makes commits reproducible to the hash: their time is that of a given commit. */
export async function commitMaker({ git, root, identity }: Repo, timeOf: string) {
  const time = await git.must(root, ["show", "-s", "--format=%cI", timeOf]);
  const env = { GIT_AUTHOR_DATE: time, GIT_COMMITTER_DATE: time };
  return (tree: string, parents: readonly string[], message: string): Promise<string> =>
    git.must(root, [...identity, "commit-tree", tree, ...parents.flatMap((parent) => ["-p", parent])], { input: message, env });
}

/** Moves one of our branches from one commit to another with the same files. */
export async function moveBranch(
  { git, root, commonDir }: Repo,
  branch: string,
  { from, to }: { from: string; to: string },
): Promise<void> {
  const ref = `refs/heads/${branch}`;
  await releaseLocks([join(commonDir, `${ref}.lock`)]);
  await git.must(root, ["update-ref", ref, to, from]);
}
