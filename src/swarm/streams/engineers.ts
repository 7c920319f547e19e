import type { Expected } from "../run/caller.ts";
import type { RunContext } from "../run/context.ts";
import { engineerSession, streamKeys } from "../run/keys.ts";
import { futureCwdOfStream } from "../run/workspace.ts";

/** How many engineers are prepared before the number of tasks is known. */
const PREPARED = 4;

type Place = Pick<RunContext, "pipeline" | "workplace" | "runId">;

/** The engineers of the first streams. */
export function firstEngineers(place: Place, agent: string): Expected[] {
  const count = place.workplace.kind === "branch" ? Math.min(place.pipeline.concurrency, PREPARED) : 1;
  return Array.from({ length: count }, (_, index) => engineerOf(place, agent, index + 1)).flat();
}

/** The engineer of one stream, unless the folder it will work in cannot be made in advance. */
export function engineerOf({ pipeline, workplace, runId }: Place, agent: string, number: number): Expected[] {
  const cwd = futureCwdOfStream(workplace, number);
  if (cwd === undefined) return [];
  const session = engineerSession(runId, number);
  return [{ key: streamKeys(number).draft, agent, duty: "build", model: pipeline.primaryModel, cwd, session }];
}
