import type { EventData, RunEventType } from "../../protocol/events.ts";
import type { ReviewLoop, RunModel, RunStream } from "../../protocol/runs.ts";
import type { CheckEnd } from "../../workers/remote/job-messages.ts";
import type { Caller, Expected } from "../agents/caller.ts";
import type { Background } from "../agents/prompts.ts";
import type { SwarmTask } from "../agents/task-list.ts";
import type { Checks } from "../checks/checks.ts";
import type { Agent } from "../pipeline/agents.ts";
import type { Approver } from "../pipeline/kind.ts";
import type { Placed, ResolvedPipeline } from "../pipeline/schema.ts";
import type { RunSettings } from "../pipeline/settings.ts";
import type { Journal } from "../steps/journal.ts";
import type { Workplace } from "../workspace/workspace.ts";
import type { Documents } from "./documents.ts";

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
  /** Those of every repository. */
  checks: Pick<Checks, "run" | "settled">;
  /** The run's own repository first, then its companions. */
  parts: readonly RunPart[];
  documents: Documents;
  workplace: Workplace;
  about: Background;
  /** Nobody is asked unless the project's checks can run. */
  requireChecks: boolean;
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
  /** Resolves when the first model was asked. */
  asked: Promise<void>;
  /** Installs what the project's lock files ask for, and notes what cannot be had. */
  prepare: () => Promise<void>;
  /** Runs a command of the project's in one of the run's trees, behind the wall, as checks are run. */
  runInTree: (command: string, folder: string) => Promise<CheckEnd>;
  note: (text: string) => void;
  recordLoop: (loop: ReviewLoop) => void;
  recordStream: (stream: RunStream, phase: string) => void;
  /** Ends what goes on beside the phases, and waits for that. */
  end: () => Promise<void>;
}

/** One of the repositories that a run works on, with what checks it. */
export interface RunPart {
  workplace: Workplace;
  checks: Checks;
  journal: Journal;
  note: (text: string) => void;
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
