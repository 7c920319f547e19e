import { existsSync, lstatSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Git } from "../../git/command.ts";
import { submodulesOf } from "../../git/nested.ts";
import { openRepo, type Repo } from "../../git/repository.ts";
import { type RunRefs, refsOfRun } from "../../git/run-refs.ts";
import { LEAVING } from "../../git/worktrees.ts";
import { messageOf, UserError } from "../../lib/errors.ts";
import type { RunStatus } from "../../protocol/runs.ts";
import type { RunRow } from "../../store/runs.ts";

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
  /** Of the folder and the sessions. */
  bytes: number;
  worktrees: string[];
  sessions: string[];
  /** Missing where the project is in no repository any more. */
  repo?: Repo & RunRefs;
  /** Repositories of submodules that have branches of the run. */
  submodules: { root: string; refs: RunRefs }[];
  /** Why git could not be asked. */
  refused?: string;
}

/** What each of these runs left; runs that left nothing are not among them. */
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
    const submodules = repo ? await branchesInSubmodules(repo, row.id) : [];
    const isEmpty = !existsSync(folder) && ofRun.length === 0 && !refs?.branches.length && !refs?.aside.length;
    if (isEmpty && submodules.length === 0) continue;
    const places = [folder, ...ofRun];
    found.push({
      ...{ run: row, status, folder, sessions: ofRun, submodules },
      bytes: places.reduce((sum, path) => sum + diskUse(path), 0),
      worktrees: [...new Set(namesIn(join(folder, "worktrees")).map((name) => name.replace(LEAVING, "")))],
      ...(repo && refs && { repo: { ...repo, ...refs } }),
      ...(refused !== undefined && { refused }),
    });
  }
  return found;
}

async function repoOf(git: Git, project: string): Promise<{ repo?: Repo; refused?: string }> {
  if (!statSync(project, { throwIfNoEntry: false })?.isDirectory()) return {};
  try {
    const repo = await openRepo(git, project);
    return repo ? { repo } : {};
  } catch (error) {
    if (error instanceof UserError) return { refused: messageOf(error) };
    throw error;
  }
}

async function branchesInSubmodules({ git, root }: Repo, runId: string): Promise<Leftovers["submodules"]> {
  const found: Leftovers["submodules"] = [];
  for (const { folder } of await submodulesOf(git, root)) {
    const inside = join(root, folder);
    if (!existsSync(join(inside, ".git"))) continue;
    const refs = await refsOfRun(git, inside, runId);
    if (refs.branches.length > 0) found.push({ root: inside, refs });
  }
  return found;
}

/** The folders and files that the runtime's sessions of each run are kept in. */
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

export function namesIn(folder: string): string[] {
  return existsSync(folder) ? readdirSync(folder) : [];
}

/** The room that a file or a folder takes on the disk. */
export function diskUse(path: string): number {
  const there = lstatSync(path, { throwIfNoEntry: false });
  if (!there) return 0;
  const own = there.blocks * 512;
  return there.isDirectory() ? readdirSync(path).reduce((sum, name) => sum + diskUse(join(path, name)), own) : own;
}
