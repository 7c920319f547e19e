import { existsSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { deleteRefs } from "../../git/refs.ts";
import type { Repo } from "../../git/repository.ts";
import { deleteBranches, type RunBranch } from "../../git/run-refs.ts";
import { holdsWork, removeWorktree, treeOf } from "../../git/worktrees.ts";
import { conflict, UserError } from "../../lib/errors.ts";
import { realOf } from "../../lib/real-path.ts";
import { removeTree } from "../../process/remove-tree.ts";
import type { Cleaned, CleanItem } from "../../protocol/runs.ts";
import { diskUse, findLeftovers, type Leftovers, type LeftoversDeps, namesIn } from "../workspace/leftovers.ts";
import { removeEmpty, streamBranch } from "../workspace/workspace.ts";
import type { RunRecords } from "./records.ts";

export interface CleanerDeps extends LeftoversDeps {
  records: Pick<RunRecords, "runs" | "known" | "status" | "cancel">;
}

export interface CleanOptions {
  /** Also remove work that exists nowhere else. */
  unmerged?: boolean | undefined;
  /** Only runs that ended before. */
  before?: Date | undefined;
  /** Only report what would be removed. */
  dryRun?: boolean | undefined;
}

const MOST_RUNS = 100_000;
/** The user's own files that a run overwrote, as they were before. */
const OVERWRITTEN = "earlier";

/** Removes what runs left: worktrees, branches, refs, sessions and copies. If interrupted, the next call finishes the work. */
export function createCleaner({ records, ...deps }: CleanerDeps) {
  const { runs } = records;

  /** The named runs, else all that ended; never a running one. */
  function chosen(ids: readonly string[]) {
    const rows = ids.length > 0 ? ids.map((id) => records.known(id)) : runs.list(MOST_RUNS);
    const all = rows.map((row) => ({ row, status: records.status(row) }));
    const busy = all.filter(({ status }) => status === "running");
    if (ids.length > 0 && busy.length > 0)
      throw conflict(
        `${busy.map(({ row }) => row.id).join(", ")}: is under way, and what it works with is not removed. End it first: swarm cancel ${busy[0]!.row.id}`,
      );
    return all.filter(({ status }) => status !== "running" && (ids.length > 0 || status !== "interrupted"));
  }

  /** Cleans the named runs, or all that ended; with `dryRun` it only reports what would be removed and what kept. */
  return async (ids: readonly string[], { unmerged = false, before, dryRun = false }: CleanOptions): Promise<Cleaned> => {
    const old = chosen(ids).filter(
      ({ row }) => before === undefined || (row.finished_at ?? row.created_at) < before.toISOString(),
    );
    const items: CleanItem[] = [];
    for (const left of await findLeftovers(deps, old)) {
      const item = await describe(left, unmerged);
      if (ids.length === 0 && !isWorthwhile(item)) continue;
      if (!dryRun) {
        // Somebody may have resumed it since.
        if (records.status(records.known(left.run.id)) === "running") continue;
        if (left.status === "interrupted") records.cancel(left.run.id);
        await remove(left, item, unmerged);
      }
      items.push(item);
    }
    return { items, bytes: items.reduce((sum, { bytes }) => sum + bytes, 0), removed: !dryRun && items.length > 0 };
  };
}
export type Clean = ReturnType<typeof createCleaner>;

const isWorthwhile = ({ worktrees, branches, refs, sessions, copies }: CleanItem) =>
  worktrees.length + branches.length + copies.length + refs + sessions > 0;

async function describe(left: Leftovers, unmerged: boolean): Promise<CleanItem> {
  const { run, status, bytes, repo, folder, refused, sessions } = left;
  const base = { run: run.id, status, projectPath: run.project_path, bytes };
  if (refused !== undefined)
    return { ...base, worktrees: [], branches: [], copies: [], refs: 0, sessions: 0, kept: [`all of it, because ${refused}`] };
  const withWork = unmerged ? [] : await worktreesWithWork(left);
  const ofStanding = new Set(withWork.map((name) => branchOf(left, name)));
  const isTaken = ({ name, needed }: RunBranch) =>
    !ofStanding.has(name) && (needed === undefined || (needed === "unmerged" && unmerged));
  const branches = [...(repo?.branches ?? []), ...left.others.flatMap((other) => other.branches)];
  const taken = branches.filter(isTaken);
  const kept = [
    ...branches
      .filter((each) => !taken.includes(each))
      .map(
        ({ name, needed }) =>
          `the branch ${name}, ${needed === "unmerged" ? "whose commits nothing else has" : "which is checked out"}`,
      ),
    ...withWork.map((name) => `the worktree ${join(folder, "worktrees", name)}, which holds work that is committed nowhere`),
    ...(!unmerged && existsSync(join(folder, OVERWRITTEN))
      ? [`${join(folder, OVERWRITTEN)}, documents of yours that the run wrote over`]
      : []),
    ...left.submodules.flatMap(({ root, refs }) =>
      refs.branches.filter(({ needed }) => needed).map(({ name }) => `the branch ${name} of the submodule ${root}`),
    ),
  ];
  const stays = [...withWork.map((name) => join("worktrees", name)), ...(unmerged ? [] : [OVERWRITTEN])];
  return {
    ...base,
    bytes: bytes - (await diskUse(stays.map((name) => join(folder, name)))),
    copies: namesIn(folder).filter((name) => !stays.includes(name) && (name !== "worktrees" || withWork.length === 0)),
    worktrees: left.worktrees.filter((name) => !withWork.includes(name)),
    branches: [...new Set(taken.map(({ name }) => name))],
    refs: (repo?.aside.length ?? 0) + left.others.reduce((sum, other) => sum + other.aside.length, 0),
    sessions: sessions.length,
    kept,
  };
}

async function worktreesWithWork({ worktrees, folder, repo, ...left }: Leftovers): Promise<string[]> {
  if (!repo) return [];
  const found: string[] = [];
  for (const name of worktrees) {
    const path = join(folder, "worktrees", name);
    // A half-removed worktree, or one prepared and never used, holds nothing.
    if (namesIn(path).length === 0) continue;
    const tree = worktreeOf(repositoryOf({ repo, others: left.others }, name), path, branchOf(left, name));
    if (!tree || (await holdsWork(tree))) found.push(name);
  }
  return found;
}

/** The repository that a worktree of a run belongs to. */
function repositoryOf({ repo, others }: { repo: Repo; others: Leftovers["others"] }, worktree: string): Repo {
  return others.find((other) => worktree === other.worktree || worktree === `trial-${other.worktree}`) ?? repo;
}

function worktreeOf(...of: Parameters<typeof treeOf>): ReturnType<typeof treeOf> | undefined {
  try {
    return treeOf(...of);
  } catch (error) {
    if (error instanceof UserError) return undefined;
    throw error;
  }
}

/** The branch that a worktree of a run was made with. */
function branchOf({ run }: Pick<Leftovers, "run">, worktree: string): string {
  const own = run.branch ?? `swarm/${run.id}`;
  const number = /^stream-(\d+)$/.exec(worktree)?.[1];
  return number === undefined ? own : streamBranch(own, Number(number));
}

/**
 * Removes worktrees before the branches they have checked out, and the folder last, because everything is found again through it.
 */
async function remove(left: Leftovers, { branches, worktrees, copies }: CleanItem, unmerged: boolean): Promise<void> {
  const { repo, folder, sessions } = left;
  if (repo) {
    const git = repo.git.with({ writable: [folder] });
    for (const name of worktrees) {
      const owner = repositoryOf({ repo, others: left.others }, name);
      const at = { ...owner, git: owner.git.with({ writable: [folder] }) };
      await removeWorktree(at, join(folder, "worktrees", name), branchOf(left, name), { evenWithWork: unmerged });
    }
    for (const each of [repo, ...left.others]) {
      const spare = each.branches.filter(
        ({ name, needed }) => branches.includes(name) && (needed === undefined || (needed === "unmerged" && unmerged)),
      );
      await deleteBranches(each.git.with({ writable: [folder] }), each.root, spare);
      await deleteRefs(each.git.with({ writable: [folder] }), each.root, each.aside);
    }
    for (const { root, refs } of left.submodules) {
      const spare = refs.branches.filter(({ needed }) => needed === undefined);
      const writable = [await git.must(root, ["rev-parse", "--absolute-git-dir"])];
      await deleteBranches(git.with({ writable }), root, spare);
    }
  }
  for (const path of sessions) await removeTree(join(realOf(dirname(path)), basename(path)));
  for (const name of copies) await removeTree(join(realOf(folder), name));
  removeEmpty(folder);
  if (namesIn(folder).length === 0) await removeTree(join(realOf(dirname(folder)), basename(folder)));
}
