import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import type { Git } from "../git/command.ts";
import { learnCommitStyle, wordCommit } from "../git/commit-style.ts";
import { bring, installedIn } from "../git/dependencies.ts";
import { deleteRefs, refsBelow } from "../git/refs.ts";
import { baseCommit, openRepo, type Repo, refuseReadOnly } from "../git/repository.ts";
import { committerOf, latestMessages } from "../git/rewrite.ts";
import { createStands } from "../git/stand.ts";
import { addWorktree, commitAll, current, placeBelow, removeWorktree, treeOf } from "../git/worktrees.ts";
import { squadProtection } from "../home/modes.ts";
import { writeFileAtomic } from "../lib/atomic.ts";
import { messageOf, UserError } from "../lib/errors.ts";
import { smallTextAt } from "../lib/pinned/read.ts";
import { named } from "../lib/quoted.ts";
import { realOf } from "../lib/real-path.ts";
import { removeTree } from "../process/remove-tree.ts";
import type { SandboxProfile } from "../process/sandbox.ts";
import { findInstalls, notInstalledIn, shellCommandOf } from "../project/installs.ts";
import { createPreparer, isInstalled, isPrepared, missingInstallMessage, type PreparerDeps } from "../project/prepare.ts";
import type { Squad, Task } from "../protocol/squads.ts";
import { readJson } from "../store/read-json.ts";
import type { Worktree } from "../workers/remote/code.ts";

/** Where a task is worked on. */
export interface WorkFolder {
  cwd: string;
  /** What commands may do there. */
  sandboxProfile?: SandboxProfile;
  /** Its own branch and worktree; missing if it works in the project's folder. */
  own?: { branch: string; base: string; treeBefore: string; isDirty: boolean; tree: Worktree; installed: readonly string[] };
  /** What the project's files require and is not installed here, each with the reason and the command for it. */
  missing: string[];
}

/** What a task left on its branch. */
export interface Saved {
  branch: string;
  tree: string;
  commit: string;
}

export interface WorkFoldersDeps extends Omit<PreparerDeps, "deadlineMs"> {
  git: Git;
  /** The environment of commands. */
  env: NodeJS.ProcessEnv;
  /** The folder of all worktrees, each in a folder of its task. */
  folder: string;
}

/** The one worktree in a task's folder. */
const WORKTREE = "task";
/** In a task's folder: what could not be installed for it; the file exists once that was tried. */
const MISSING = "missing.json";

/** Gives tasks a worktree each, if their squad wants that, and commits what they leave there to a branch. */
export function createWorkFolders({ git, folder, env, log, ...preparing }: WorkFoldersDeps) {
  const preparer = createPreparer({ ...preparing, log });
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

  /** Removes a task's worktree. The branch stays if it has commits. */
  async function clear(squad: Squad, id: string): Promise<void> {
    if (!existsSync(folderOf(id))) return;
    const repo = await repoOf(squad, id);
    const branch = await branchOf(repo, id);
    if ((await removeWorktree(repo, pathOf(id), branch)) === "kept") {
      log.warn("a task's worktree holds work that is on no branch, and stays", { task: id, folder: pathOf(id) });
      return;
    }
    await removeTree(join(realOf(folder), id));
  }

  return {
    /** Creates the folder of a task, or finds the one that an earlier life created. */
    async open(squad: Squad, task: Task, signal: AbortSignal): Promise<WorkFolder> {
      if (squad.isolation === "none") return { cwd: squad.projectPath, missing: missingIn(squad.projectPath) };
      const { id } = task;
      const repo = await repoOf(squad, id);
      refuseReadOnly(repo);
      const branch = await branchOf(repo, id);
      const known = task.evidence?.base;
      mkdirSync(folderOf(id), { recursive: true, mode: 0o700 });
      const base = known ?? (await baseCommit(repo, join(folderOf(id), "base-index"), "The project as it was\n"));
      const path = pathOf(id);
      const [{ dirty: isDirty, ignored }] = await Promise.all([
        repo.status(),
        addWorktree(repo, { path, branch, base, kept: known !== undefined }),
      ]);
      const installed = installedIn({ root: repo.root, ignored });
      await bring({ from: repo.root, to: path, names: installed, scratch: folderOf(id), share: false, signal });
      const began = known === undefined ? await current(treeOf(repo, path, branch)) : undefined;
      const sandboxProfileOf = createStands({
        projectPath: squad.projectPath,
        folder: folderOf(id),
        height: squadProtection(squad.safety).sandbox,
      });
      const cwd = placeBelow(path, repo.prefix);
      const treeBefore = began?.tree ?? task.evidence?.treeBefore ?? "";
      const tree = { repo, path, scratch: folderOf(id) };
      const own = { branch, base: began?.commit ?? base, treeBefore, isDirty, tree, installed };
      return { cwd, sandboxProfile: sandboxProfileOf(cwd), own, missing: [] };
    },
    /**
     * Installs what the project's files require into a task's worktree, once per task, and adds what cannot be installed to what
     * is missing. Calls `begins` before each install, which may take minutes.
     */
    async prepare({ id, attempts }: Task, place: WorkFolder, begins: (text: string) => void, signal: AbortSignal): Promise<void> {
      const { own, sandboxProfile, missing } = place;
      if (!own || !sandboxProfile) return;
      const file = join(folderOf(id), MISSING);
      const before = readJson(z.array(z.string()), smallTextAt(file));
      if (before) return void missing.push(...before);
      const { repo, path, scratch } = own.tree;
      const checkout = { root: repo.root, names: own.installed };
      const wanted = findInstalls(path, [repo.prefix || "."]).filter((each) => !isInstalled(each, checkout, path));
      for (const install of wanted) {
        begins(`installs what ${join(install.folder, install.file)} asks for: ${shellCommandOf(install)}`);
        const tree = treeOf(repo, path, own.branch);
        // In a later life, an agent may already have worked in the tree.
        const at = { tree, checkout, stand: sandboxProfile, env, scratch, keep: attempts === 0, signal };
        const done = await preparer.prepare([install], at);
        missing.push(
          ...done.filter((each) => !isPrepared(each)).map((each) => missingInstallMessage(each, "What needs it cannot run.")),
        );
      }
      writeFileAtomic(file, JSON.stringify(missing));
    },
    /** Commits a task's worktree to its branch; undefined for a task without one. */
    async save(squad: Squad, { id, description, evidence }: Task): Promise<Saved | undefined> {
      if (evidence?.branch === undefined) return undefined;
      const path = pathOf(id);
      const repo = await repoOf(squad, id);
      const style = learnCommitStyle(await latestMessages(repo.git, repo.root, evidence.base ?? "HEAD"));
      const subject = { text: description, request: description, files: [] };
      const message = wordCommit(style, subject, { signer: await committerOf(repo) });
      if (!existsSync(path)) throw new UserError(`its worktree ${path} was deleted, and with it what was not on the branch yet.`);
      const { tree, commit } = await commitAll(repo, treeOf(repo, path, evidence.branch), message);
      return { branch: evidence.branch, tree, commit };
    },
    /** Removes an ended task's worktree, and its branch if nothing is on it. Never rejects. */
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

/** A task's branch. Git cannot have `io/<task>` beside a branch `io`. */
async function branchOf({ git, root }: Repo, id: string): Promise<string> {
  const begun = `refs/heads/io/${id}`;
  const there = new Set(await refsBelow(git, root, begun, `refs/heads/io-${id}`, "refs/heads/io"));
  return there.has(begun) || !(there.has("refs/heads/io") || there.has(`refs/heads/io-${id}`)) ? `io/${id}` : `io-${id}`;
}
