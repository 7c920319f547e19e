import { existsSync } from "node:fs";
import { join } from "node:path";
import { learnCommitStyle, wordCommit } from "../git/commit-style.ts";
import { companionName } from "../git/companion-name.ts";
import { bring, installedIn } from "../git/dependencies.ts";
import { deleteRefs, refsBelow } from "../git/refs.ts";
import { baseCommit, type Repo } from "../git/repository.ts";
import { committerOf, latestMessages } from "../git/rewrite.ts";
import { addWorktree, commitAll, current, placeBelow, removeWorktree, type Saved, treeOf } from "../git/worktrees.ts";
import { UserError } from "../lib/errors.ts";
import type { Squad, Task } from "../protocol/squads.ts";
import type { Worktree } from "../workers/remote/code.ts";

/** One of the repositories that a task works on, and its worktree there. */
export interface TaskPart {
  projectPath: string;
  path: string;
  /** What is known of it once the task has begun. */
  known: { base: string; treeBefore: string | null; treeAfter: string | null } | undefined;
}

/** A worktree of a task, as it is when work begins there. */
export interface TaskTree {
  projectPath: string;
  /** Where the project is in it. */
  cwd: string;
  base: string;
  treeBefore: string;
  isDirty: boolean;
  tree: Worktree;
  installed: readonly string[];
}

/** The name of the worktree of a task's own project. */
const OWN = "task";

/** The repositories of a task: that of its squad, then the others as they were named. */
export function partsOf({ projectPath }: Squad, task: Pick<Task, "with" | "evidence">, folder: string): TaskPart[] {
  const { base, treeBefore = null, treeAfter = null, others = [] } = task.evidence ?? {};
  const pathOf = (name: string) => join(folder, "worktrees", name);
  return [
    { projectPath, path: pathOf(OWN), known: base === undefined ? undefined : { base, treeBefore, treeAfter } },
    ...task.with.map((path, index) => ({
      projectPath: path,
      path: pathOf(companionName(path, index + 1)),
      known: others[index],
    })),
  ];
}

/** Creates a worktree of a task, or finds the one that an earlier life created. */
export async function openTree(
  repo: Repo,
  { projectPath, path, known }: TaskPart,
  { branch, scratch, signal }: { branch: string; scratch: string; signal: AbortSignal },
): Promise<TaskTree> {
  const base = known?.base ?? (await baseCommit(repo, join(scratch, "base-index"), "The project as it was\n"));
  const [{ dirty: isDirty, ignored }] = await Promise.all([
    repo.status(),
    addWorktree(repo, { path, branch, base, kept: known !== undefined }),
  ]);
  const installed = installedIn({ root: repo.root, ignored });
  await bring({ from: repo.root, to: path, names: installed, scratch, share: false, signal });
  const began = known === undefined ? await current(treeOf(repo, path, branch)) : undefined;
  return {
    ...{ projectPath, isDirty, installed, tree: { repo, path, scratch } },
    cwd: placeBelow(path, repo.prefix),
    base: began?.commit ?? base,
    treeBefore: began?.tree ?? known?.treeBefore ?? "",
  };
}

/** Commits what is in a worktree of a task to its branch. */
export async function saveTree(
  repo: Repo,
  { path, known }: TaskPart,
  { branch, description }: { branch: string; description: string },
): Promise<Saved> {
  if (!existsSync(path)) throw new UserError(`its worktree ${path} was deleted, and with it what was not on the branch yet.`);
  const style = learnCommitStyle(await latestMessages(repo.git, repo.root, known?.base ?? "HEAD"));
  const subject = { text: description, request: description, files: [] };
  const message = wordCommit(style, subject, { signer: await committerOf(repo) });
  return commitAll(repo, treeOf(repo, path, branch), message);
}

/** Removes a worktree of a task, and its branch if nothing is on it. Says whether it had to stay. */
export async function closeTree(repo: Repo, { path, known }: TaskPart, branch: string): Promise<"kept" | "removed"> {
  if ((await removeWorktree(repo, path, branch)) === "kept") return "kept";
  if (known !== undefined && known.treeAfter === known.treeBefore)
    await deleteRefs(repo.git, repo.root, [`refs/heads/${branch} ${known.base}`]);
  return "removed";
}

/** A task's branch, by the same name in each of its repositories. Git cannot have `io/<task>` beside a branch `io`. */
export async function branchIn(repos: readonly Repo[], id: string): Promise<string> {
  const names = await Promise.all(
    repos.map(async ({ git, root }) => {
      const begun = `refs/heads/io/${id}`;
      const there = new Set(await refsBelow(git, root, begun, `refs/heads/io-${id}`, "refs/heads/io"));
      return there.has(begun) || !(there.has("refs/heads/io") || there.has(`refs/heads/io-${id}`));
    }),
  );
  return names.every(Boolean) ? `io/${id}` : `io-${id}`;
}
