import type { EventData, RunEventType } from "../../protocol/events.ts";
import type { ReviewLoop, RunModel, RunStream } from "../../protocol/runs.ts";
import type { Background } from "../phases/prompts.ts";
import type { SwarmTask } from "../phases/task-list.ts";
import type { Agent } from "../pipeline/agents.ts";
import type { ResolvedPipeline, Review } from "../pipeline/schema.ts";
import type { RunSettings } from "../pipeline/settings.ts";
import type { Reviewer } from "../review/loop.ts";
import type { Checks } from "../streams/checks.ts";
import type { Caller } from "./caller.ts";
import type { Documents } from "./documents.ts";
import type { Journal } from "./journal.ts";
import type { Workplace } from "./workspace.ts";

/** Tells what happened in a run. */
export type TellRun = <T extends RunEventType>(type: T, data: Omit<EventData<T>, "runId">) => void;

/** What the phases of one run share. */
export interface RunContext {
  runId: string;
  pipeline: ResolvedPipeline;
  agents: ReadonlyMap<string, Agent>;
  settings: RunSettings;
  journal: Journal;
  caller: Caller;
  checks: Checks;
  documents: Documents;
  workplace: Workplace;
  about: Background;
  signal: AbortSignal;
  tell: TellRun;
  /** The model that is asked for a name of the pipeline. */
  serving: (name: string) => RunModel;
  /** Who was served by which model in a phase, or in one stream of it. */
  served: (phase: string, stream?: number) => string;
  note: (text: string) => void;
  recordLoop: (loop: ReviewLoop) => void;
  recordStream: (stream: RunStream) => void;
}

/** What one phase leaves to the next. */
export interface Progress {
  spec: string;
  tasks: SwarmTask[];
  design: string;
  streams: RunStream[];
  /** The tree the run began with, and the one it has now. */
  baseTree: string;
  tree: string;
}

/** The reviewers of a list of reviews; a reviewer that is there twice has two. */
export function reviewersOf(prefix: string, reviews: readonly Review[]): Reviewer[] {
  return reviews.map((review, index) => {
    const same = reviews.slice(0, index).filter((other) => other.agent === review.agent).length;
    return {
      key: `${prefix}/review:${review.agent}${same > 0 ? `~${same + 1}` : ""}`,
      agent: review.agent,
      maxIterations: review.maxIterations,
      approvalKeyword: review.approvalKeyword,
      clarificationAgent: review.clarificationAgent,
      clarificationKeyword: review.clarificationAgent ? (review.clarificationKeyword ?? "CLARIFICATION_NEEDED") : undefined,
      onExhausted: review.onExhausted,
    };
  });
}
