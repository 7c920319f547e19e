import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { unnest } from "./nested.ts";
import { setRef } from "./refs.ts";
import { NAMELESS } from "./repository.ts";
import { resetSubmodules } from "./submodules.ts";
import { addAll, type Tree } from "./tree.ts";

/**
 * Commits a worktree's current files on top of given parents without changing its HEAD or index. Uses a new temporary index,
 * so that a lock left by an interrupted git cannot be in the way.
 */
export async function snapshotOf(
  { git, path }: Pick<Tree, "git" | "path">,
  { on, folder, message }: { on: readonly [string, ...string[]]; folder: string; message: string },
): Promise<string> {
  const index = join(folder, `index-${randomBytes(8).toString("hex")}`);
  const env = { GIT_INDEX_FILE: index };
  try {
    await git.must(path, ["read-tree", on[0]], { env });
    await addAll(git, path, { env });
    const tree = await git.must(path, ["write-tree"], { env });
    const parents = on.flatMap((commit) => ["-p", commit]);
    return await git.must(path, [...NAMELESS, "commit-tree", tree, ...parents], { input: `${message}\n` });
  } finally {
    rmSync(index, { force: true });
    rmSync(`${index}.lock`, { force: true });
  }
}

/** The ref that keeps changes set aside from a branch. */
export function asideRef(branch: string, label: string): string {
  return `refs/swarm/${branch.replace(/^swarm[/-]/, "")}/${label}`;
}

/** Saves a worktree's uncommitted changes under a ref and cleans the tree; returns the ref if there were any. */
export async function setAside(tree: Tree, ref: string): Promise<string | undefined> {
  const { git, path, repo, record } = tree;
  const status = await git.must(path, ["status", "--porcelain", "--untracked-files=all"]);
  if (status === "") return undefined;
  await unnest(git, path);
  // An interrupted cleanup already saved more than is left in the tree.
  const before = (await git.run(path, ["rev-parse", "-q", "--verify", ref])).stdout.trim();
  const on = before === "" ? (["HEAD"] as const) : (["HEAD", before] as const);
  const commit = await snapshotOf(tree, { on, folder: record, message: "left behind in the tree" });
  await setRef(repo, ref, commit);
  await git.must(path, ["reset", "-q", "--hard", "HEAD"]);
  await git.must(path, ["clean", "-q", "-fd"]);
  await resetSubmodules(tree);
  return ref;
}
