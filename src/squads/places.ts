import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Worktree } from "../away/code.ts";
import type { Git } from "../git/command.ts";
import { bring, installedIn } from "../git/dependencies.ts";
import { deleteRefs, refsBelow } from "../git/refs.ts";
import { baseCommit, openRepo, type Repo } from "../git/repository.ts";
import { createStands } from "../git/stand.ts";
import { addWorktree, commitAll, current, removeWorktree, treeOf } from "../git/worktrees.ts";
import { messageOf, UserError } from "../lib/errors.ts";
import type { Log } from "../lib/log.ts";
import { named, oneLine } from "../lib/quoted.ts";
import type { Stand } from "../process/sandbox.ts";
import type { Squad, Task } from "../protocol/squads.ts";

/** Where a task is worked on. */
export interface Place {
  cwd: string;
  /** What commands may do there. */
  stand?: Stand;
  /** Its own branch and worktree; missing where it is worked on in the project's folder. */
  own?: { branch: string; base: string; treeBefore: string; isDirty: boolean; tree: Worktree; installed: readonly string[] };
}

/** What a task left on its branch. */
export interface Saved {
  branch: string;
  tree: string;
  commit: string;
}

export interface PlacesDeps {
  git: Git;
  /** Where worktrees lie, each in a folder of its task. */
  folder: string;
  log: Log;
}

/** The one worktree in a task's folder. */
const WORKTREE = "task";

/** Gives tasks of squads that want it a worktree each, and puts what they leave there on a branch. */
export function createPlaces({ git, folder, log }: PlacesDeps) {
  const folderOf = (id: string) => join(folder, id);
  const pathOf = (id: string) => join(folderOf(id), "worktrees", WORKTREE);

  async function repoOf({ slug, projectPath }: Squad, id: string): Promise<Repo> {
    const found = await openRepo(git, projectPath);
    if (!found)
      throw new UserError(
        `${named(projectPath, 300)} is no git repository, so a task cannot have a worktree of its own there. Make it one (git init), or let the squad work in the folder itself: io squad set ${slug} --isolation none`,
      );
    return { ...found, git: found.git.with({ writable: [folderOf(id)] }) };
  }

  /** Ends what a task's worktree was for. The branch stays if there is anything on it. */
  async function clear(squad: Squad, id: string): Promise<void> {
    if (!existsSync(folderOf(id))) return;
    const repo = await repoOf(squad, id);
    const branch = await branchOf(repo, id);
    if ((await removeWorktree(repo, pathOf(id), branch)) === "kept") {
      log.warn("a task's worktree holds work that is on no branch, and stays", { task: id, folder: pathOf(id) });
      return;
    }
    rmSync(folderOf(id), { recursive: true, force: true });
  }

  return {
    /** Makes the place of a task, or finds the one that an earlier life made. */
    async open(squad: Squad, task: Task, signal: AbortSignal): Promise<Place> {
      if (squad.isolation === "none") return { cwd: squad.projectPath };
      const { id } = task;
      const repo = await repoOf(squad, id);
      const branch = await branchOf(repo, id);
      const known = task.evidence?.base;
      mkdirSync(folderOf(id), { recursive: true, mode: 0o700 });
      const base = known ?? (await baseCommit(repo, join(folderOf(id), "base-index"), "The project as it was\n"));
      const path = pathOf(id);
      await addWorktree(repo, { path, branch, base, kept: known !== undefined });
      const installed = installedIn(repo);
      await bring({ from: repo.root, to: path, names: installed, scratch: folderOf(id), share: false, signal });
      const began = known === undefined ? await current(treeOf(repo, path, branch)) : undefined;
      const stands = createStands({ projectPath: squad.projectPath, folder: folderOf(id), height: squad.safety.sandbox });
      const cwd = join(path, repo.prefix);
      const treeBefore = began?.tree ?? task.evidence?.treeBefore ?? "";
      const tree = { repo, path, scratch: folderOf(id) };
      const own = { branch, base: began?.commit ?? base, treeBefore, isDirty: repo.dirty, tree, installed };
      return { cwd, stand: stands(cwd), own };
    },
    /** Puts what is in a task's worktree on its branch; undefined for a task that has none. */
    async save(squad: Squad, { id, agent, description, evidence }: Task): Promise<Saved | undefined> {
      if (evidence?.branch === undefined) return undefined;
      const path = pathOf(id);
      const repo = await repoOf(squad, id);
      const message = `${oneLine(description, 72)}\n\nTask ${id}, by ${oneLine(agent, 100)} of the squad ${squad.slug}\n`;
      if (!existsSync(path)) throw new UserError(`its worktree ${path} was deleted, and with it what was not on the branch yet.`);
      const { tree, commit } = await commitAll(repo, treeOf(repo, path, evidence.branch), message);
      return { branch: evidence.branch, tree, commit };
    },
    /** Takes an ended task's worktree away, and its branch if nothing is on it. Never rejects. */
    async close(squad: Squad, { id, evidence }: Task): Promise<void> {
      try {
        await clear(squad, id);
        if (evidence?.branch === undefined || evidence.base === undefined || evidence.treeAfter !== evidence.treeBefore) return;
        const repo = await repoOf(squad, id);
        await deleteRefs(repo.git, repo.root, [`refs/heads/${evidence.branch} ${evidence.base}`]);
      } catch (error) {
        log.warn("a task's worktree could not be taken away", { task: id, error: messageOf(error) });
      }
    },
    /** The tasks whose folders are still there. */
    left: (): string[] => (existsSync(folder) ? readdirSync(folder).filter((name) => name.startsWith("t_")) : []),
  };
}
export type Places = ReturnType<typeof createPlaces>;

/** A task's branch. Git cannot have `io/<task>` beside a branch `io`. */
async function branchOf({ git, root }: Repo, id: string): Promise<string> {
  const begun = `refs/heads/io/${id}`;
  const there = new Set(await refsBelow(git, root, begun, `refs/heads/io-${id}`, "refs/heads/io"));
  return there.has(begun) || !(there.has("refs/heads/io") || there.has(`refs/heads/io-${id}`)) ? `io/${id}` : `io-${id}`;
}
