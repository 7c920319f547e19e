import { join } from "node:path";
import { companionName } from "../../git/companion-name.ts";
import { dropMerged, removeWorktree } from "../../git/worktrees.ts";
import { UserError } from "../../lib/errors.ts";
import { realOf } from "../../lib/real-path.ts";
import { removeTree } from "../../process/remove-tree.ts";
import type { Run } from "../../protocol/runs.ts";
import type { RunRow, Runs } from "../../store/runs.ts";
import { documentNames } from "../context/documents.ts";
import type { PhaseKind } from "../phases/kind.ts";
import type { Inputs } from "../pipeline/inputs.ts";
import { kindOf } from "../pipeline/kind.ts";
import type { Placed, ResolvedPipeline } from "../pipeline/schema.ts";
import type { RunSettings } from "../pipeline/settings.ts";
import { withCompanions } from "../workspace/companions.ts";
import {
  type Companion,
  installedOfRun,
  openWorkplace,
  removeEmpty,
  streamBranch,
  type Workplace,
  type WorkplaceDeps,
} from "../workspace/workspace.ts";
import { documentsOf } from "./document-names.ts";
import { historyRef } from "./final-branch.ts";

export interface RunWorkplaceDeps extends Pick<WorkplaceDeps, "git" | "folder" | "inspected" | "signal" | "onPlace"> {
  runs: Pick<Runs, "setTree">;
  row: RunRow;
  pipeline: ResolvedPipeline;
  kinds: readonly PhaseKind[];
  settings: RunSettings;
  inputs: Pick<Inputs, "base" | "branch" | "with">;
}

/** How many worktrees are removed in parallel. */
const AT_ONCE = 4;

/** Opens the place a run works in, and records its branch before anything is done there. */
export async function openRunWorkplace({
  runs,
  row,
  pipeline: { pipeline: phases },
  kinds,
  settings,
  inputs,
  ...place
}: RunWorkplaceDeps): Promise<Workplace> {
  const { onBranch: parallel, documents } = placeOf(phases, kinds);
  const leftOut = documentNames(documents, settings);
  const { base, branch } = inputs;
  const own = await openWorkplace(
    { projectPath: row.project_path, runId: row.id, parallel, leftOut, base, branch, ...place },
    row.base === null ? undefined : { base: row.base },
  );
  if (own.kind === "in place") {
    if (inputs.with.length > 0) throw new UserError(inPlaceAlone);
    return own;
  }
  const { git, folder, signal } = place;
  const companions: Companion[] = [];
  for (const [index, other] of inputs.with.entries()) {
    const name = companionName(other.projectPath, index + 1);
    const there = { projectPath: other.projectPath, branch: own.branch, base: other.base, name, leftOut: [] };
    const known = row.base === null ? undefined : { base: other.base };
    const workplace = await openWorkplace({ git, folder, signal, runId: row.id, parallel: true, ...there }, known);
    if (workplace.kind === "in place") throw new UserError(`${other.projectPath} is in no git repository any more.`);
    companions.push({ name, projectPath: other.projectPath, workplace });
  }
  const workplace = withCompanions(own, companions);
  if (workplace.kind === "branch" && row.base === null)
    runs.setTree(row.id, { branch: workplace.branch, base: workplace.base, tree: null });
  return workplace;
}

/** Why a run that works in place changes only one folder. */
export const inPlaceAlone =
  "a run that works in place changes one folder alone. With --with, every project has to be a git repository, and the implement phase must not say parallel: false.";

/** Where the phases of a pipeline work, and the documents they write. */
export function placeOf(phases: readonly Placed[], kinds: readonly PhaseKind[]): { onBranch: boolean; documents: string[] } {
  return {
    onBranch: phases.some((phase) => kindOf(kinds, phase).workplace?.(phase) === "branch"),
    documents: documentsOf(phases, kinds),
  };
}

/** Removes the worktrees an ended run no longer needs, except those that hold uncommitted work. */
export async function removeRunWorktrees(
  workplace: Workplace,
  { id: runId, streams }: Pick<Run, "id" | "streams">,
): Promise<void> {
  if (workplace.kind === "in place") return;
  const { repo, folder } = workplace;
  const done = streams.filter(({ status }) => status === "done");
  const removed: string[] = [];
  const remove = async ({ number }: Run["streams"][number]) => {
    const branch = streamBranch(workplace.branch, number);
    const path = join(folder, "worktrees", `stream-${number}`);
    if ((await removeWorktree(repo, path, branch)) === "removed") removed.push(branch);
  };
  for (let at = 0; at < done.length; at += AT_ONCE) await Promise.all(done.slice(at, at + AT_ONCE).map(remove));
  // The branch itself has the streams' work in commits of its own.
  for (const into of [`refs/heads/${workplace.branch}`, historyRef(runId)]) await dropMerged(repo, removed, into);
  await removeWorktree(workplace.repo, workplace.workspace.tree.path, workplace.branch);
  for (const { workplace: other } of workplace.companions)
    await removeWorktree(other.repo, other.workspace.tree.path, other.branch);
  removeEmpty(join(workplace.folder, "worktrees"));
  await removeTree(installedOfRun({ folder: realOf(folder) }));
}
