import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Git } from "./command.ts";
import { releaseLocks } from "./locks.ts";
import type { Repo } from "./repository.ts";

/** The refs that these names match or contain; none without a repository. */
export async function refsBelow(git: Git, cwd: string, ...prefixes: string[]): Promise<string[]> {
  const { code, stdout } = await git.run(cwd, ["for-each-ref", "--format=%(refname)", ...prefixes], { maxOutput: 2_000_000 });
  return code === 0 ? stdout.split("\n").filter((name) => name !== "") : [];
}

/** Sets one of our refs to a commit, also if a git was interrupted while doing so. */
export async function setRef({ git, root, commonDir }: Pick<Repo, "git" | "root" | "commonDir">, ref: string, commit: string) {
  await releaseLocks([join(commonDir, `${ref}.lock`)]);
  await git.must(root, ["update-ref", ref, commit]);
}

/** Deletes refs; returns whether all are gone. */
export async function deleteRefs(git: Git, cwd: string, refs: readonly string[]): Promise<boolean> {
  if (refs.length === 0) return true;
  const { code } = await git.run(cwd, ["update-ref", "--stdin"], { input: refs.map((ref) => `delete ${ref}\n`).join("") });
  return code === 0;
}

export async function isAncestor(git: Git, folder: string, commit: string, of: string): Promise<boolean> {
  return (await git.run(folder, ["merge-base", "--is-ancestor", commit, of])).code === 0;
}

/** Whether a worktree has an unfinished merge, judging by its repository's files. */
export function merging(record: string): boolean {
  return existsSync(join(record, "MERGE_HEAD"));
}
