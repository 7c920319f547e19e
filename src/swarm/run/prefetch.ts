import type { Phase, ResolvedPipeline } from "../pipeline/schema.ts";
import type { Expected } from "./caller.ts";
import { sessionOf } from "./caller.ts";
import type { Workplace } from "./workspace.ts";
import { standOfStream } from "./workspace.ts";

/** How many engineers are got ready before it is known how many tasks there are. */
const ENGINEERS = 4;

/** Who opens a phase, where that is known before it begins: their sessions are made while others work. */
export function openers(pipeline: ResolvedPipeline, phase: Phase | undefined, cwd: string): Expected[] {
  const { agent, phase: name } = phase ?? {};
  if (agent === undefined) return [];
  const planner = { agent, duty: "plan" as const, model: pipeline.primaryModel, cwd };
  if (name === "spec") return [{ ...planner, key: draftKey(name, agent) }];
  if (name === "decompose") return [{ ...planner, key: tasksKey(agent, 1) }];
  if (name === "cross-model-review")
    return [{ key: `${name}/review:${agent}/1`, agent, duty: "review", model: pipeline.reviewModel, cwd }];
  return [];
}

/** The engineers of the first streams. */
export function engineers(pipeline: ResolvedPipeline, workplace: Workplace, runId: string): Expected[] {
  const count = workplace.kind === "branch" ? Math.min(pipeline.concurrency, ENGINEERS) : 1;
  return Array.from({ length: count }, (_, index) => engineer(pipeline, workplace, runId, index + 1)).flat();
}

/** The engineer of one stream, where its place can be made ready before it is filled. */
export function engineer(pipeline: ResolvedPipeline, workplace: Workplace, runId: string, number: number): Expected[] {
  const phase = pipeline.pipeline.find((each) => each.phase === "implement");
  const cwd = standOfStream(workplace, number);
  if (phase === undefined || cwd === undefined) return [];
  const session = sessionOf(runId, streamSession(number));
  return [
    { key: `${streamPrefix(number)}/draft`, agent: phase.agent, duty: "build", model: pipeline.primaryModel, cwd, session },
  ];
}

export const draftKey = (phase: string, agent: string) => `${phase}/draft:${agent}`;
export const tasksKey = (agent: string, round: number) => `decompose/tasks:${agent}/${round}`;
export const streamPrefix = (number: number) => `implement/stream-${number}`;
/** The lasting session of a stream's engineer. */
export const streamSession = (number: number) => `stream-${number}`;
