import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Git } from "./command.ts";
import { releaseLocks } from "./locks.ts";
import type { Repo } from "./repository.ts";

/** The refs of a repository that these name or stand above; none where there is no repository. */
export async function refsBelow(git: Git, cwd: string, ...prefixes: string[]): Promise<string[]> {
  const { code, stdout } = await git.run(cwd, ["for-each-ref", "--format=%(refname)", ...prefixes], { maxOutput: 2_000_000 });
  return code === 0 ? stdout.split("\n").filter((name) => name !== "") : [];
}

/** Leads a ref of our own to a commit, also where a git was cut off while it did so. */
export async function setRef({ git, root, commonDir }: Pick<Repo, "git" | "root" | "commonDir">, ref: string, commit: string) {
  await releaseLocks([join(commonDir, `${ref}.lock`)]);
  await git.must(root, ["update-ref", ref, commit]);
}

/** Deletes refs; tells whether all are gone. */
export async function deleteRefs(git: Git, cwd: string, refs: readonly string[]): Promise<boolean> {
  if (refs.length === 0) return true;
  const { code } = await git.run(cwd, ["update-ref", "--stdin"], { input: refs.map((ref) => `delete ${ref}\n`).join("") });
  return code === 0;
}

export async function isAncestor(git: Git, folder: string, commit: string, of: string): Promise<boolean> {
  return (await git.run(folder, ["merge-base", "--is-ancestor", commit, of])).code === 0;
}

/** Whether a merge has been begun in a worktree and not ended, by what its repository keeps of it. */
export function merging(record: string): boolean {
  return existsSync(join(record, "MERGE_HEAD"));
}
