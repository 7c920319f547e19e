import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { unnest } from "./nested.ts";
import { setRef } from "./refs.ts";
import { NAMELESS } from "./repository.ts";
import { ADD_ALL } from "./scripts.ts";
import type { Tree } from "./tree.ts";

/**
 * The files of a worktree as they are now, as a commit that stands on others; without a change to what the worktree itself
 * knows. The index for it lies in a folder for a moment, under a name that no git which was cut off can still hold.
 */
export async function pictureOf(
  { git, path }: Pick<Tree, "git" | "path">,
  { on, folder, message }: { on: readonly [string, ...string[]]; folder: string; message: string },
): Promise<string> {
  const index = join(folder, `index-${randomBytes(8).toString("hex")}`);
  const env = { GIT_INDEX_FILE: index };
  try {
    await git.must(path, ["read-tree", on[0]], { env });
    await git.must(path, ADD_ALL, { env });
    const tree = await git.must(path, ["write-tree"], { env });
    const parents = on.flatMap((commit) => ["-p", commit]);
    return await git.must(path, [...NAMELESS, "commit-tree", tree, ...parents], { input: `${message}\n` });
  } finally {
    rmSync(index, { force: true });
    rmSync(`${index}.lock`, { force: true });
  }
}

/** Where what is put aside of a branch is kept. */
export function asideRef(branch: string, label: string): string {
  return `refs/swarm/${branch.replace(/^swarm[/-]/, "")}/${label}`;
}

/** Puts what is uncommitted in a worktree under a ref of its own and makes the tree clean again; the ref, if there was anything. */
export async function setAside(tree: Tree, ref: string): Promise<string | undefined> {
  const { git, path, repo, record } = tree;
  const status = await git.must(path, ["status", "--porcelain", "--untracked-files=all"]);
  if (status === "") return undefined;
  await unnest(git, path);
  // Whoever was cut off while the tree was made clean has put more aside than is still there.
  const before = (await git.run(path, ["rev-parse", "-q", "--verify", ref])).stdout.trim();
  const on = before === "" ? (["HEAD"] as const) : (["HEAD", before] as const);
  const commit = await pictureOf(tree, { on, folder: record, message: "left behind in the tree" });
  await setRef(repo, ref, commit);
  await git.must(path, ["reset", "-q", "--hard", "HEAD"]);
  await git.must(path, ["clean", "-q", "-fd"]);
  return ref;
}
