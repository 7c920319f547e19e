import { join } from "node:path";
import { dropMerged, removeWorktree } from "../../git/repository.ts";
import type { Run } from "../../protocol/runs.ts";
import type { RunRow, Runs } from "../../store/runs.ts";
import type { ResolvedPipeline } from "../pipeline/schema.ts";
import type { RunSettings } from "../pipeline/settings.ts";
import { documentNames } from "./documents.ts";
import { openWorkplace, removeEmpty, streamBranch, type Workplace, type WorkplaceDeps } from "./workspace.ts";

/** The place a run works in, and its branch, written down before anything is done there. */
export async function openRunWorkplace(
  runs: Runs,
  row: RunRow,
  pipeline: ResolvedPipeline,
  settings: RunSettings,
  place: Pick<WorkplaceDeps, "folder" | "onPlace">,
): Promise<Workplace> {
  const implement = pipeline.pipeline.find((phase) => phase.phase === "implement");
  const leftOut = documentNames(pipeline, settings.docDir, settings.summaryFileName);
  const workplace = await openWorkplace(
    { projectPath: row.project_path, runId: row.id, parallel: implement?.parallel ?? false, leftOut, ...place },
    row.base === null ? undefined : { base: row.base },
  );
  if (workplace.kind === "branch" && row.base === null)
    runs.setTree(row.id, { branch: workplace.branch, base: workplace.base, tree: null });
  return workplace;
}

/** Takes away the trees an ended run no longer needs; nothing that holds uncommitted work. */
export async function putAway(workplace: Workplace, { streams }: Pick<Run, "streams">): Promise<void> {
  if (workplace.kind === "in place") return;
  for (const stream of streams.filter((each) => each.status === "done")) {
    if ((await removeWorktree(workplace.repo, join(workplace.folder, "worktrees", `stream-${stream.number}`))) === "removed") {
      await dropMerged(workplace.repo, streamBranch(workplace.branch, stream.number), workplace.branch);
    }
  }
  await removeWorktree(workplace.repo, workplace.workspace.path);
  removeEmpty(join(workplace.folder, "worktrees"));
}
