import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { Git } from "../git/command.ts";
import { openRepo, type Repo, refuseReadOnly } from "../git/repository.ts";
import { createSandboxProfiles } from "../git/sandbox-profiles.ts";
import { type Saved, treeOf } from "../git/worktrees.ts";
import { squadProtection, stricterSafety } from "../home/modes.ts";
import type { SquadSafety } from "../home/safety-config.ts";
import { writeFileAtomic } from "../lib/atomic.ts";
import { messageOf, UserError } from "../lib/errors.ts";
import { isFolder } from "../lib/is-folder.ts";
import { smallTextAt } from "../lib/pinned/read.ts";
import { named } from "../lib/quoted.ts";
import { realOf } from "../lib/real-path.ts";
import { removeTree } from "../process/remove-tree.ts";
import type { SandboxProfile } from "../process/sandbox.ts";
import { findInstalls, notInstalledIn, shellCommandOf } from "../project/installs.ts";
import { createPreparer, isInstalled, isPrepared, missingInstallMessage, type PreparerDeps } from "../project/prepare.ts";
import type { Squad, Task } from "../protocol/squads.ts";
import { readJson } from "../store/read-json.ts";
import { branchIn, closeTree, openTree, partsOf, saveTree, type TaskPart, type TaskTree } from "./work-trees.ts";

/** Where a task is worked on. */
export interface WorkFolder {
  cwd: string;
  /** What commands may do there. */
  sandboxProfile?: SandboxProfile;
  /** Its own branch and worktree; missing if it works in the project's folder. */
  own?: TaskTree & { branch: string };
  /** Its worktrees in other repositories, on branches of the same name. */
  others: readonly TaskTree[];
  /** The safety settings of its squad; of those of all projects that it changes the stricter ones. */
  safety: SquadSafety;
  /** What the project's files require and is not installed here, each with the reason and the command for it. */
  missing: string[];
}

/** What a task left on its branch. */
export interface SavedWork extends Saved {
  /** In the other repositories, in the order in which they were named. */
  others: Saved[];
}

export interface WorkFoldersDeps extends Omit<PreparerDeps, "deadlineMs"> {
  git: Git;
  /** The environment of commands. */
  env: NodeJS.ProcessEnv;
  /** The folder of all worktrees, each in a folder of its task. */
  folder: string;
  /** What the squad of a folder has set for itself. */
  safetyOf: (projectPath: string) => SquadSafety;
}

/** In a task's folder: what could not be installed for it; the file exists once that was tried. */
const MISSING = "missing.json";

/** Gives tasks a worktree each, if their squad wants that, and commits what they leave there to a branch. */
export function createWorkFolders({ git, folder, env, log, safetyOf, ...preparing }: WorkFoldersDeps) {
  const preparer = createPreparer({ ...preparing, log });
  const folderOf = (id: string) => join(folder, id);

  async function repoOf(projectPath: string, id: string, remedy = ""): Promise<Repo> {
    const found = await openRepo(git, projectPath);
    if (!found)
      throw new UserError(
        `${named(projectPath, 300)} is no git repository, so a task cannot have a worktree of its own there. Make it one (git init)${remedy}`,
      );
    return { ...found, git: found.git.with({ writable: [folderOf(id)] }) };
  }

  const reposOf = ({ slug }: Squad, { id, with: others }: Pick<Task, "id" | "with">, parts: readonly TaskPart[]) => {
    const inside = `, or let the squad work in the folder itself: io squad set ${slug} --isolation none`;
    return Promise.all(parts.map(({ projectPath }) => repoOf(projectPath, id, others.length === 0 ? inside : ".")));
  };

  /** Removes an ended task's worktree in one of its repositories; a repository that is gone does not keep the others. */
  async function closePart(part: TaskPart, { id, evidence }: Task): Promise<"kept" | "removed"> {
    try {
      if (!isFolder(part.projectPath)) throw new UserError(`${part.projectPath} is not there any more`);
      const repo = await repoOf(part.projectPath, id);
      const branch = evidence?.branch ?? (await branchIn([repo], id));
      const left = await closeTree(repo, part, branch);
      if (left === "kept")
        log.warn("a task's worktree holds work that is on no branch, and stays", { task: id, folder: part.path });
      return left;
    } catch (error) {
      log.warn("a task's worktree could not be taken away", { task: id, folder: part.path, error: messageOf(error) });
      return "kept";
    }
  }

  return {
    /** Creates the folder of a task, or finds the one that an earlier life created. */
    async open(squad: Squad, task: Task, signal: AbortSignal): Promise<WorkFolder> {
      const { id } = task;
      if (squad.isolation === "none" && task.with.length === 0)
        return { cwd: squad.projectPath, others: [], safety: squad.safety, missing: missingIn(squad.projectPath) };
      const parts = partsOf(squad, task, folderOf(id));
      const repos = await reposOf(squad, task, parts);
      for (const repo of repos) refuseReadOnly(repo);
      const branch = task.evidence?.branch ?? (await branchIn(repos, id));
      mkdirSync(folderOf(id), { recursive: true, mode: 0o700 });
      const trees: TaskTree[] = [];
      for (const [index, repo] of repos.entries())
        trees.push(await openTree(repo, parts[index]!, { branch, scratch: folderOf(id), signal }));
      const [own, ...others] = trees as [TaskTree, ...TaskTree[]];
      const safety = others.map(({ projectPath }) => safetyOf(projectPath)).reduce(stricterSafety, squad.safety);
      const sandboxProfileOf = createSandboxProfiles({
        projectPath: squad.projectPath,
        folder: folderOf(id),
        height: squadProtection(safety).sandbox,
        others: others.map(({ projectPath, tree }) => ({ projectPath, worktree: tree.path })),
      });
      const { cwd } = own;
      return { cwd, sandboxProfile: sandboxProfileOf(cwd), own: { ...own, branch }, others, safety, missing: [] };
    },
    /**
     * Installs what the project's files require into a task's worktrees, once per task, and adds what cannot be installed to what
     * is missing. Calls `begins` before each install, which may take minutes.
     */
    async prepare({ id, attempts }: Task, place: WorkFolder, begins: (text: string) => void, signal: AbortSignal): Promise<void> {
      const { own, others, sandboxProfile, missing } = place;
      if (!own || !sandboxProfile) return;
      const file = join(folderOf(id), MISSING);
      const before = readJson(z.array(z.string()), smallTextAt(file));
      if (before) return void missing.push(...before);
      for (const { tree: worktree, installed } of [own, ...others]) {
        const { repo, path, scratch } = worktree;
        const checkout = { root: repo.root, names: installed };
        const wanted = findInstalls(path, [repo.prefix || "."]).filter((each) => !isInstalled(each, checkout, path));
        for (const install of wanted) {
          begins(`installs what ${join(install.folder, install.file)} asks for: ${shellCommandOf(install)}`);
          const tree = treeOf(repo, path, own.branch);
          const profile = { ...sandboxProfile, place: path, writable: [] };
          // In a later life, an agent may already have worked in the tree.
          const at = { tree, checkout, profile, env, scratch, keep: attempts === 0, signal };
          const done = await preparer.prepare([install], at);
          missing.push(
            ...done.filter((each) => !isPrepared(each)).map((each) => missingInstallMessage(each, "What needs it cannot run.")),
          );
        }
      }
      writeFileAtomic(file, JSON.stringify(missing));
    },
    /** Commits a task's worktrees to its branch; undefined for a task without one. */
    async save(squad: Squad, task: Task): Promise<SavedWork | undefined> {
      const { id, description, evidence } = task;
      const branch = evidence?.branch;
      if (branch === undefined) return undefined;
      const parts = partsOf(squad, task, folderOf(id));
      const repos = await reposOf(squad, task, parts);
      const saved: Saved[] = [];
      for (const [index, repo] of repos.entries()) saved.push(await saveTree(repo, parts[index]!, { branch, description }));
      const [own, ...others] = saved as [Saved, ...Saved[]];
      return { ...own, others };
    },
    /** Removes an ended task's worktrees, and its branches if nothing is on them. Never rejects. */
    async close(squad: Squad, task: Task): Promise<void> {
      const { id } = task;
      if (!existsSync(folderOf(id))) return;
      const left: string[] = [];
      for (const part of partsOf(squad, task, folderOf(id))) left.push(await closePart(part, task));
      if (!left.includes("kept")) await removeTree(join(realOf(folder), id));
    },
    /** Where a task's agent finds its repositories; a task that works in the project's folder has none of its own. */
    placesOf: (squad: Squad, task: Task): Pick<TaskPart, "projectPath" | "path">[] => partsOf(squad, task, folderOf(task.id)),
    /** The tasks whose folders still exist. */
    left: (): string[] => (existsSync(folder) ? readdirSync(folder).filter((name) => name.startsWith("t_")) : []),
  };
}
export type WorkFolders = ReturnType<typeof createWorkFolders>;

/** In the project's own folder nothing is installed unasked. */
const missingIn = (folder: string): string[] =>
  notInstalledIn(folder).map(
    (install) => `what ${install.file} asks for is not installed. Install it: ${shellCommandOf(install)}`,
  );
