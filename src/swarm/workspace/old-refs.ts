import { statSync } from "node:fs";
import { resolve } from "node:path";
import type { Git } from "../../git/command.ts";
import { deleteRefs, refsBelow } from "../../git/refs.ts";
import type { Runs } from "../../store/runs.ts";

const PREFIX = "refs/swarm/";
/** `refs/swarm/<run>/<label>`, or `refs/swarm/<run>-stream-<n>/<label>`. */
const OF_A_RUN = /^refs\/swarm\/(r_[0-9a-z]+)(?:-stream-\d+)?\//;

/**
 * Deletes the refs of what runs set aside in their projects, if they ended before a moment; returns how many. Branches are left
 * alone: they hold results.
 */
export async function deleteOldRefs(git: Git, runs: Pick<Runs, "get" | "projects">, before: string): Promise<number> {
  const isOver = (id: string) => {
    const finishedAt = runs.get(id)?.finished_at;
    return typeof finishedAt === "string" && finishedAt < before;
  };
  let deleted = 0;
  for (const project of runs.projects()) {
    if (!statSync(project, { throwIfNoEntry: false })?.isDirectory()) continue;
    const refs = (await refsBelow(git, project, PREFIX)).filter((ref) => isOver(OF_A_RUN.exec(ref)?.[1] ?? ""));
    if (refs.length === 0) continue;
    const commonDir = resolve(project, await git.must(project, ["rev-parse", "--git-common-dir"]));
    if (!git.isOwn(commonDir) && (await deleteRefs(git.with({ writable: [commonDir] }), project, refs))) deleted += refs.length;
  }
  return deleted;
}
