import { type ClusterStatus, type Worker, WorkerState } from "../../protocol/workers.ts";
import type { WorkerRow } from "../../store/workers.ts";

/** A worker that is silent for this long counts as lost: it should report five times as often. */
const LOST_MS = 10_000;

/** A worker as it is shown. */
export function workerOf(row: WorkerRow, now = Date.now()): Worker {
  const { name, labels, capacity, running, version, engine, wall, seenAt } = row;
  return { name, state: stateOf(row, now), labels, capacity, running, version, engine, wall, seenAt };
}

function stateOf({ seenAt, draining, running }: WorkerRow, now: number): WorkerState {
  if (seenAt === null || now - Date.parse(seenAt) > LOST_MS) return "lost";
  if (draining) return "draining";
  return running > 0 ? "busy" : "ready";
}

/** How many workers are in each state. */
export function countOf(workers: readonly Pick<Worker, "state">[]): ClusterStatus["workers"] {
  const count = (state: WorkerState) => workers.filter((worker) => worker.state === state).length;
  return Object.fromEntries(WorkerState.options.map((state) => [state, count(state)])) as ClusterStatus["workers"];
}
