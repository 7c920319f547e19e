import { join } from "node:path";
import { dropMerged, removeWorktree } from "../../git/worktrees.ts";
import type { Run } from "../../protocol/runs.ts";
import type { RunRow, Runs } from "../../store/runs.ts";
import type { PhaseKind } from "../phases/kind.ts";
import { kindOf } from "../pipeline/kind.ts";
import type { Placed, ResolvedPipeline } from "../pipeline/schema.ts";
import type { RunSettings } from "../pipeline/settings.ts";
import { documentsOf } from "./document-names.ts";
import { documentNames } from "./documents.ts";
import { openWorkplace, removeEmpty, streamBranch, type Workplace, type WorkplaceDeps } from "./workspace.ts";

export interface RunWorkplaceDeps extends Pick<WorkplaceDeps, "git" | "folder" | "looked" | "signal" | "onPlace"> {
  runs: Pick<Runs, "setTree">;
  row: RunRow;
  pipeline: ResolvedPipeline;
  kinds: readonly PhaseKind[];
  settings: RunSettings;
}

/** How many worktrees are taken away side by side. */
const AT_ONCE = 4;

/** Opens the place a run works in, and records its branch before anything is done there. */
export async function openRunWorkplace({
  runs,
  row,
  pipeline: { pipeline: phases },
  kinds,
  settings,
  ...place
}: RunWorkplaceDeps): Promise<Workplace> {
  const { onBranch: parallel, documents } = placeOf(phases, kinds);
  const leftOut = documentNames(documents, settings);
  const workplace = await openWorkplace(
    { projectPath: row.project_path, runId: row.id, parallel, leftOut, ...place },
    row.base === null ? undefined : { base: row.base },
  );
  if (workplace.kind === "branch" && row.base === null)
    runs.setTree(row.id, { branch: workplace.branch, base: workplace.base, tree: null });
  return workplace;
}

/** Where the phases of a pipeline work, and the documents they write. */
export function placeOf(phases: readonly Placed[], kinds: readonly PhaseKind[]): { onBranch: boolean; documents: string[] } {
  return {
    onBranch: phases.some((phase) => kindOf(kinds, phase).workplace?.(phase) === "branch"),
    documents: documentsOf(phases, kinds),
  };
}

/** Removes the worktrees an ended run no longer needs, except those that hold uncommitted work. */
export async function putAway(workplace: Workplace, { streams }: Pick<Run, "streams">): Promise<void> {
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
  await dropMerged(repo, removed, workplace.branch);
  await removeWorktree(workplace.repo, workplace.workspace.tree.path, workplace.branch);
  removeEmpty(join(workplace.folder, "worktrees"));
}
