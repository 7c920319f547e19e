import { relative, resolve, sep } from "node:path";
import { isWithin } from "../lib/within.ts";
import type { Squad, TaskEvidence } from "../protocol/squads.ts";
import type { SquadStore, TaskRecord } from "../store/squads.ts";
import type { ToolCall } from "../store/tool-calls.ts";
import { filesWritten } from "./evidence.ts";

export interface NeighboursDeps {
  store: Pick<SquadStore, "list" | "tasksDuring" | "findTask">;
  callsOf: (owner: string) => ToolCall[];
}

/** Other tasks that worked on the same files meanwhile, and what they are known to have changed. */
export interface Neighbours {
  alongside: string[];
  byOthers: NonNullable<TaskEvidence["byOthers"]>;
}

/** Finds the tasks that worked where a task did: in its folder, above it or below it. */
export function findNeighbours({ store, callsOf }: NeighboursDeps, task: TaskRecord, { projectPath }: Squad): Neighbours {
  if (task.evidence?.branch !== undefined) return { alongside: [], byOthers: [] };
  const since = task.startedAt ?? task.createdAt;
  const near = store
    .list()
    .filter((squad) => isWithin(squad.projectPath, projectPath) || isWithin(projectPath, squad.projectPath));
  const others = near.flatMap((squad) =>
    store
      .tasksDuring(squad.slug, since)
      .filter((id) => id !== task.id && store.findTask(id)?.evidence?.branch === undefined)
      .map((id) => ({ id, folder: squad.projectPath })),
  );
  const own = new Set(filesWritten(callsOf(task.id)).map((path) => resolve(projectPath, path)));
  const byOthers = others.flatMap(({ id, folder }) => {
    const written = filesWritten(callsOf(id).filter(({ createdAt }) => createdAt >= since)).map((path) => resolve(folder, path));
    return written
      .filter((file) => !own.has(file) && isWithin(projectPath, file))
      .map((file) => ({ file: relative(projectPath, file).split(sep).join("/"), task: id }));
  });
  return { alongside: others.map(({ id }) => id), byOthers };
}
