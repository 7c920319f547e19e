import type { UpcomingCall } from "../agents/caller.ts";
import type { RunContext } from "../context/context.ts";
import { engineerSession, IMPLEMENT, streamKeys } from "../steps/keys.ts";
import { futureCwdOfStream, prepareStream } from "../workspace/workspace.ts";

/** How many engineers are prepared before the number of tasks is known. */
const PREPARED = 4;

type EngineerContext = Pick<RunContext, "pipeline" | "workplace" | "runId">;
type ImplementPhase = { id: string; agent: string; parallel: boolean };

/** The engineers of the first streams of a phase; `before` is how many streams earlier phases had. */
export function firstEngineers(place: EngineerContext, phase: ImplementPhase, before: number): UpcomingCall[] {
  const count = place.workplace.kind === "branch" && phase.parallel ? Math.min(place.pipeline.concurrency, PREPARED) : 1;
  return Array.from({ length: count }, (_, index) => engineerOf(place, phase, before + index + 1)).flat();
}

/** Creates the tree of a run's first stream in advance; it begins where the run did. */
export function prepareFirstStream({ workplace }: EngineerContext, { id, parallel }: ImplementPhase, before: number): void {
  if (workplace.kind !== "branch" || !parallel || id !== IMPLEMENT || before > 0) return;
  prepareStream(workplace, 1, { commit: workplace.base, tree: workplace.baseTree });
}

/** The engineer of one stream, unless its folder cannot be created in advance. */
export function engineerOf(
  { pipeline, workplace, runId }: EngineerContext,
  { id, agent }: Pick<ImplementPhase, "id" | "agent">,
  number: number,
): UpcomingCall[] {
  const cwd = futureCwdOfStream(workplace, number);
  if (cwd === undefined) return [];
  const session = engineerSession(runId, number);
  return [{ key: streamKeys(id, number).draft, agent, duty: "build", model: pipeline.primaryModel, cwd, session }];
}
