import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Git } from "../../git/command.ts";
import { companionName } from "../../git/companion-name.ts";
import { submoduleAt, submodulesOf } from "../../git/nested.ts";
import { openRepo, type Repo } from "../../git/repository.ts";
import { type RunRefs, refsOfRun } from "../../git/run-refs.ts";
import { LEAVING } from "../../git/worktrees.ts";
import { createBreath } from "../../lib/breath.ts";
import { messageOf, UserError } from "../../lib/errors.ts";
import { isFolder } from "../../lib/is-folder.ts";
import { entriesAt } from "../../lib/pinned/list.ts";
import { realOf } from "../../lib/real-path.ts";
import { statsAt } from "../../lib/stats-at.ts";
import type { RunStatus } from "../../protocol/runs.ts";
import { readJson } from "../../store/read-json.ts";
import type { RunRow } from "../../store/runs.ts";
import { Inputs } from "../pipeline/inputs.ts";

export interface LeftoversDeps {
  git: Git;
  runsFolder: string;
  /** Where the runtime keeps its sessions. */
  sessionsFolder: string;
}

/** What a run left on this machine. */
export interface Leftovers {
  run: RunRow;
  status: RunStatus;
  folder: string;
  /** The size of the folder and the sessions. */
  bytes: number;
  worktrees: string[];
  sessions: string[];
  /** Missing if the project is no longer in a repository. */
  repo?: Repo & RunRefs;
  /** The other repositories that the run changed. */
  others: (Repo & RunRefs & { worktree: string })[];
  /** Repositories of submodules that have branches of the run. */
  submodules: { root: string; refs: RunRefs }[];
  /** Why git could not be asked. */
  refused?: string;
}

/** What each of these runs left; runs that left nothing are omitted. */
export async function findLeftovers(
  { git, runsFolder, sessionsFolder }: LeftoversDeps,
  runs: readonly { row: RunRow; status: RunStatus }[],
): Promise<Leftovers[]> {
  const repos = new Map<string, Promise<{ repo?: Repo; refused?: string }>>();
  const sessions = sessionsByRun(sessionsFolder);
  const found: Leftovers[] = [];
  for (const { row, status } of runs) {
    const known = repos.get(row.project_path) ?? repoOf(git, row.project_path);
    repos.set(row.project_path, known);
    const { repo, refused } = await known;
    const folder = join(runsFolder, row.id);
    const ofRun = sessions.get(row.id) ?? [];
    const refs = repo && (await refsOfRun(repo.git, repo.root, row.id, folder));
    const others = await otherRepositories(git, row, folder);
    const submodules = repo ? await branchesInSubmodules(repo, row.id) : [];
    const ofAll = [...(refs ? [refs] : []), ...others];
    const isEmpty =
      !existsSync(folder) && ofRun.length === 0 && ofAll.every((each) => each.branches.length + each.aside.length === 0);
    if (isEmpty && submodules.length === 0) continue;
    const places = [folder, ...ofRun];
    found.push({
      ...{ run: row, status, folder, sessions: ofRun, submodules, others },
      bytes: await diskUse(places),
      worktrees: [...new Set(namesIn(join(folder, "worktrees")).map((name) => name.replace(LEAVING, "")))],
      ...(repo && refs && { repo: { ...repo, ...refs } }),
      ...(refused !== undefined && { refused }),
    });
  }
  return found;
}

async function repoOf(git: Git, project: string): Promise<{ repo?: Repo; refused?: string }> {
  if (!isFolder(project)) return {};
  try {
    const repo = await openRepo(git, project);
    return repo ? { repo } : {};
  } catch (error) {
    if (error instanceof UserError) return { refused: messageOf(error) };
    throw error;
  }
}

/** What a run left in the other repositories that it changed; one that is gone or refused is left alone. */
async function otherRepositories(git: Git, row: RunRow, folder: string): Promise<Leftovers["others"]> {
  const found: Leftovers["others"] = [];
  for (const [index, { projectPath }] of (readJson(Inputs, row.inputs)?.with ?? []).entries()) {
    const { repo } = await repoOf(git, projectPath);
    if (!repo) continue;
    const refs = await refsOfRun(repo.git, repo.root, row.id, folder);
    found.push({ ...repo, ...refs, worktree: companionName(projectPath, index + 1) });
  }
  return found;
}

async function branchesInSubmodules(repo: Repo, runId: string): Promise<Leftovers["submodules"]> {
  const { git, root } = repo;
  const found: Leftovers["submodules"] = [];
  for (const { folder } of await submodulesOf(git, root)) {
    if (submoduleAt(repo, folder) === undefined) continue;
    const inside = join(root, folder);
    const refs = await refsOfRun(git, inside, runId);
    if (refs.branches.length > 0) found.push({ root: inside, refs });
  }
  return found;
}

/** The folders and files of the runtime's sessions, by run. */
function sessionsByRun(folder: string): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const place of ["session-state", "generations"].map((name) => join(folder, name))) {
    for (const name of namesIn(place)) {
      const id = /^swarm-(r_[0-9a-z]+)-[0-9a-f]{16}(?:-g\d+|\.json)?$/.exec(name)?.[1];
      if (id !== undefined) found.set(id, [...(found.get(id) ?? []), join(place, name)]);
    }
  }
  return found;
}

/** The names in a folder; none if it does not exist, is no folder, or is unreadable. */
export function namesIn(folder: string): string[] {
  return entriesAt(realOf(folder)).map(({ name }) => name);
}

/** The disk space of files and folders, with everything in them. */
export async function diskUse(paths: readonly string[]): Promise<number> {
  const breathe = createBreath();
  const waiting = [...paths];
  let bytes = 0;
  for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
    const there = statsAt(path);
    bytes += (there?.blocks ?? 0) * 512;
    if (there?.isDirectory()) for (const name of namesIn(path)) waiting.push(join(path, name));
    await breathe();
  }
  return bytes;
}
