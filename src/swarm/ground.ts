import { join } from "node:path";
import type { Run } from "../protocol/runs.ts";
import type { RunRow, Runs } from "../store/runs.ts";
import { documentNames } from "./documents.ts";
import type { Settings } from "./pipeline/env.ts";
import type { ResolvedPipeline } from "./pipeline/schema.ts";
import { dropMerged, removeWorktree } from "./tree/git.ts";
import { type Ground, type GroundParts, openGround, removeEmpty, streamBranch } from "./tree/workspace.ts";

/** The place a run works in, and its branch, written down before anything is done there. */
export async function openRunGround(
  runs: Runs,
  row: RunRow,
  pipeline: ResolvedPipeline,
  settings: Settings,
  place: Pick<GroundParts, "folder" | "onPlace">,
): Promise<Ground> {
  const implement = pipeline.pipeline.find((phase) => phase.phase === "implement");
  const leftOut = documentNames(pipeline, settings.docDir, settings.summaryFileName);
  const ground = await openGround(
    { projectPath: row.project_path, runId: row.id, parallel: implement?.parallel ?? false, leftOut, ...place },
    row.base === null ? undefined : { base: row.base },
  );
  if (ground.kind === "branch" && row.base === null)
    runs.setTree(row.id, { branch: ground.branch, base: ground.base, tree: null });
  return ground;
}

/** Takes away the trees an ended run no longer needs; nothing that holds uncommitted work. */
export async function putAway(ground: Ground, { streams }: Pick<Run, "streams">): Promise<void> {
  if (ground.kind === "in place") return;
  for (const stream of streams.filter((each) => each.status === "done")) {
    if ((await removeWorktree(ground.repo, join(ground.folder, "worktrees", `stream-${stream.number}`))) === "removed") {
      await dropMerged(ground.repo, streamBranch(ground.branch, stream.number), ground.branch);
    }
  }
  await removeWorktree(ground.repo, ground.workspace.path);
  removeEmpty(join(ground.folder, "worktrees"));
}
