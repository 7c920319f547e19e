import type { EventData, RunEventType } from "../../protocol/events.ts";
import type { ReviewLoop, RunModel, RunStream } from "../../protocol/runs.ts";
import type { CheckEnd } from "../../workers/remote/job-messages.ts";
import type { Caller, UpcomingCall } from "../agents/caller.ts";
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

/** Announces what happened in a run. */
export type EmitRunEvent = <T extends RunEventType>(type: T, data: Omit<EventData<T>, "runId">) => void;

/** What the phases of one run share. */
export interface RunContext {
  runId: string;
  pipeline: ResolvedPipeline;
  agents: ReadonlyMap<string, Agent>;
  settings: RunSettings;
  journal: Journal;
  caller: Caller;
  /** The checks of all repositories. */
  checks: Pick<Checks, "run" | "settled">;
  /** The run's own repository first, then its companions. */
  parts: readonly RunPart[];
  documents: Documents;
  workplace: Workplace;
  about: Background;
  /** No model is asked unless the project's checks can run. */
  requireChecks: boolean;
  /** The request came from a plan. */
  planned: boolean;
  signal: AbortSignal;
  tell: EmitRunEvent;
  /** Returns the model that serves a name of the pipeline. */
  serving: (name: string) => RunModel;
  /** A line for a document: which model answered which agent in a phase, or in one stream of it. */
  served: (phase: string, stream?: number | null) => string;
  /** The agents asked first in the phases after this one, if already known. */
  firstAskedAfter: (phase: Placed) => UpcomingCall[];
  /** Resolves when the first model is asked. */
  asked: Promise<void>;
  /** Installs what the project's lock files require, and notes what cannot be installed. */
  prepare: () => Promise<void>;
  /** Runs a project command in one of the run's trees, in the sandbox, like a check. */
  runInTree: (command: string, folder: string) => Promise<CheckEnd>;
  note: (text: string) => void;
  recordLoop: (loop: ReviewLoop) => void;
  recordStream: (stream: RunStream, phase: string) => void;
  /** Ends the work beside the phases, and waits for it. */
  end: () => Promise<void>;
}

/** One of the repositories that a run works on, with its checks. */
export interface RunPart {
  workplace: Workplace;
  checks: Checks;
  journal: Journal;
  note: (text: string) => void;
}

/** What one phase passes to the next. */
export interface Progress {
  spec: string;
  tasks: SwarmTask[];
  design: string;
  streams: RunStream[];
  /** The tree the run began with, and the current one; empty while no phase changes the project. */
  baseTree: string;
  tree: string;
  /** Agents that approved the tree; they review again when it changes. */
  approvers: readonly Approver[];
}
