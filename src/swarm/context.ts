import type { Emit } from "../protocol/events.ts";
import type { ReviewLoop, RunModel, RunStream } from "../protocol/runs.ts";
import type { Caller } from "./caller.ts";
import type { Checks } from "./checks.ts";
import type { SwarmTask } from "./decompose.ts";
import type { Documents } from "./documents.ts";
import type { Journal } from "./journal.ts";
import type { Agent } from "./pipeline/agents.ts";
import type { Settings } from "./pipeline/env.ts";
import type { ResolvedPipeline, Review } from "./pipeline/schema.ts";
import type { Ground as About } from "./prompts.ts";
import type { Gate } from "./review-loop.ts";
import type { Ground } from "./tree/workspace.ts";

/** What the phases of one run share. */
export interface RunContext {
  runId: string;
  pipeline: ResolvedPipeline;
  agents: ReadonlyMap<string, Agent>;
  settings: Settings;
  journal: Journal;
  caller: Caller;
  checks: Checks;
  documents: Documents;
  ground: Ground;
  about: About;
  signal: AbortSignal;
  tell: (type: Parameters<Emit>[0]["type"], data: Record<string, unknown>) => void;
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

/** The gates of a list of reviews; a reviewer that is there twice has two. */
export function gatesOf(prefix: string, reviews: readonly Review[]): Gate[] {
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
