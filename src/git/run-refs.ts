import { realOf } from "../lib/real-path.ts";
import type { Git } from "./command.ts";
import { deleteRefs } from "./refs.ts";

export interface RunBranch {
  name: string;
  commit: string;
  /** Why it must not be deleted: no other ref contains its commits, or it is checked out. */
  needed?: "unmerged" | "checked out";
}

/** What a run left in a repository: its branches, and changes that it set aside. */
export interface RunRefs {
  branches: RunBranch[];
  aside: string[];
}

const FORMAT = "--format=%(refname) %(objectname)";
const MAX_OUTPUT = 20_000_000;

/** The refs of a run; checkouts in its own worktrees do not protect them. Of several with the same commits, one is kept. */
export async function refsOfRun(git: Git, root: string, runId: string, ownFolder = ""): Promise<RunRefs> {
  const prefixes = ["refs/heads/swarm/", "refs/heads/swarm-", "refs/swarm/"].map((prefix) => prefix + runId);
  const isOurs = (ref: string) =>
    prefixes.some((prefix) => ref.startsWith(prefix) && /^(?:-stream-\d+)?(?:\/|$)/.test(ref.slice(prefix.length)));
  const listed = await git.run(root, ["for-each-ref", FORMAT, "refs/heads/swarm", "refs/heads/swarm-*", "refs/swarm"], {
    maxOutput: MAX_OUTPUT,
  });
  const found = listed.stdout
    .split("\n")
    .map((line) => line.split(" "))
    .filter(([ref = ""]) => isOurs(ref))
    .map(([ref = "", commit = ""]) => ({ ref, commit }));
  const heads = found.filter(({ ref }) => ref.startsWith("refs/heads/")).sort((a, b) => (a.ref < b.ref ? -1 : 1));
  const checkedOutRefs = await checkedOut(git, root, ownFolder);
  const needed = new Set<string>();
  const branches: RunBranch[] = [];
  for (const { ref, commit } of heads) {
    const name = ref.slice("refs/heads/".length);
    const refs = await refsWith(git, root, commit);
    const isElsewhere = refs.some((other) => needed.has(other) || !isOurs(other));
    const why = checkedOutRefs.has(ref) ? "checked out" : isElsewhere ? undefined : "unmerged";
    if (why) needed.add(ref);
    branches.push({ name, commit, ...(why && { needed: why }) });
  }
  return { branches, aside: found.filter(({ ref }) => ref.startsWith("refs/swarm/")).map(({ ref }) => ref) };
}

/** The branches, tags and remote branches that contain a commit. */
async function refsWith(git: Git, root: string, commit: string): Promise<string[]> {
  const args = ["for-each-ref", `--contains=${commit}`, "--format=%(refname)", "refs/heads", "refs/tags", "refs/remotes"];
  const { stdout } = await git.run(root, args, { maxOutput: MAX_OUTPUT });
  return stdout.split("\n").filter((ref) => ref !== "");
}

async function checkedOut(git: Git, root: string, ownFolder: string): Promise<Set<string>> {
  const { stdout } = await git.run(root, ["worktree", "list", "--porcelain"], { maxOutput: MAX_OUTPUT });
  const isOwn = (worktree: string) => ownFolder !== "" && worktree.startsWith(`worktree ${realOf(ownFolder)}/`);
  const others = stdout.split("\n\n").filter((each) => !isOwn(each));
  return new Set(others.flatMap((each) => /^branch (.+)$/m.exec(each)?.[1] ?? []));
}

/** Deletes branches that have not moved since they were listed; returns whether all are gone. */
export async function deleteBranches(git: Git, root: string, branches: readonly RunBranch[]): Promise<boolean> {
  return deleteRefs(
    git,
    root,
    branches.map(({ name, commit }) => `refs/heads/${name} ${commit}`),
  );
}
