import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { bringDependencies } from "./dependencies.ts";
import { addWorktree, baseCommit, commitAll, current, diffOf, openRepo, openShadow, type Repo, setAside } from "./git.ts";

/** A folder that agents work in, whose every state has a name. */
export interface Workspace {
  /** Where agents stand. */
  cwd: string;
  /** Writes down the present state; its tree, and its commit where there is one. */
  save(message: string): Promise<{ tree: string; commit: string | null }>;
  diff(from: string, to: string): Promise<string>;
  /** Puts what commands left in the tree out of the way, where it can be found again. */
  tidy?(label: string): Promise<string | undefined>;
}

/** Where a run works: on a branch of its own beside the checkout, or in place. */
export type Ground =
  | { kind: "branch"; repo: Repo; branch: string; base: string; folder: string; workspace: Workspace & { path: string } }
  | { kind: "in place"; workspace: Workspace };

export interface GroundParts {
  projectPath: string;
  runId: string;
  /** The run's own folder. */
  folder: string;
  parallel: boolean;
  /** Files the run itself writes into the checkout. */
  leftOut: readonly string[];
}

/** Opens the place a run works in; the same again after a crash. */
export async function openGround(
  { projectPath, runId, folder, parallel, leftOut }: GroundParts,
  known?: { base: string },
): Promise<Ground> {
  const repo = parallel ? await openRepo(projectPath) : undefined;
  if (!repo) {
    const shadow = await openShadow(join(folder, "shadow.git"), projectPath, leftOut);
    return {
      kind: "in place",
      workspace: {
        cwd: projectPath,
        save: async () => ({ tree: await shadow.save(), commit: null }),
        diff: shadow.diff,
      },
    };
  }
  const branch = `swarm/${runId}`;
  const base = known?.base ?? (await baseCommit(repo, join(folder, "base-index"), "The project as it was when the run began\n"));
  const path = join(folder, "worktrees", "run");
  await addWorktree(repo, { path, branch, base, kept: known !== undefined });
  await bringDependencies(repo, path);
  return { kind: "branch", repo, branch, base, folder, workspace: worktree(repo, path, branch) };
}

/** A worktree and branch for one stream, off the run's branch as it is now. */
export async function openStream(
  ground: Extract<Ground, { kind: "branch" }>,
  number: number,
): Promise<{ branch: string; path: string; base: string; tree: string }> {
  const branch = streamBranch(ground.branch, number);
  const path = join(ground.folder, "worktrees", `stream-${number}`);
  await addWorktree(ground.repo, { path, branch, base: ground.branch });
  await bringDependencies(ground.repo, path);
  const at = await current(path, branch);
  return { branch, path, base: at.commit, tree: at.tree };
}

export function streamBranch(runBranch: string, number: number): string {
  return `${runBranch}-stream-${number}`;
}

export function worktree(repo: Repo, path: string, branch: string): Workspace & { path: string } {
  const cwd = join(path, repo.prefix);
  mkdirSync(cwd, { recursive: true });
  let last: { key: string; text: Promise<string> } | undefined;
  return {
    path,
    cwd,
    save: (message) => commitAll(repo, path, branch, message),
    diff(from, to) {
      const key = `${from} ${to}`;
      if (last?.key !== key) last = { key, text: diffOf(path, from, to) };
      return last.text;
    },
    tidy: (label) => setAside(path, `refs/swarm/${branch.replace(/^swarm\//, "")}/${label}`),
  };
}
