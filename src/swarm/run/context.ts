import type { EventData, RunEventType } from "../../protocol/events.ts";
import type { ReviewLoop, RunModel, RunStream } from "../../protocol/runs.ts";
import type { Background } from "../phases/prompts.ts";
import type { SwarmTask } from "../phases/task-list.ts";
import type { Agent } from "../pipeline/agents.ts";
import type { Approver } from "../pipeline/kind.ts";
import type { Placed, ResolvedPipeline } from "../pipeline/schema.ts";
import type { RunSettings } from "../pipeline/settings.ts";
import type { Checks } from "../streams/checks.ts";
import type { Caller, Expected } from "./caller.ts";
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
  /** The request came from a plan. */
  planned: boolean;
  signal: AbortSignal;
  tell: TellRun;
  /** The model that is asked for a name of the pipeline. */
  serving: (name: string) => RunModel;
  /** Which model answered whom in a phase, or in one stream of it, as a line for a document. */
  served: (phase: string, stream?: number | null) => string;
  /** Who is asked first in the phases after this one, where that is known already. */
  firstAskedAfter: (phase: Placed) => Expected[];
  note: (text: string) => void;
  recordLoop: (loop: ReviewLoop) => void;
  recordStream: (stream: RunStream, phase: string) => void;
  /** Ends what goes on beside the phases, and waits for that. */
  end: () => Promise<void>;
}

/** What one phase leaves to the next. */
export interface Progress {
  spec: string;
  tasks: SwarmTask[];
  design: string;
  streams: RunStream[];
  /** The tree the run began with, and the one it has now; empty while no phase changes the project. */
  baseTree: string;
  tree: string;
  /** Those who approved what the tree holds, and look again when it changes. */
  approvers: readonly Approver[];
}
