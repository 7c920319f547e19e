import { z } from "zod";
import { Usage } from "./usage.ts";

export const RunStatus = z.enum(["running", "done", "failed", "cancelled", "interrupted"]);
export type RunStatus = z.infer<typeof RunStatus>;

/**
 * How a run ended: with every approval and a check that could notice the change; with every approval and no such check; without
 * an approval or with a failing check; with a result that is what it began from; or not at all.
 */
export const RunOutcome = z.enum(["approved", "untested", "unapproved", "unchanged", "failed", "cancelled"]);
export type RunOutcome = z.infer<typeof RunOutcome>;

export const LoopOutcome = z.enum(["approved", "exhausted", "skipped", "failed"]);
export type LoopOutcome = z.infer<typeof LoopOutcome>;

/**
 * What a check says: "as before" is one that failed before the run and fails in nothing new; "could not run" is one that came to
 * no result of its own here.
 */
export const CheckVerdict = z.enum(["passed", "failed", "flaky", "as before", "could not run"]);
export type CheckVerdict = z.infer<typeof CheckVerdict>;

/** What one test runner said, as read from a check's output. */
export const TestResults = z.object({
  runner: z.string(),
  failed: z.array(z.string()),
  /** Null where the runner does not say. */
  passed: z.number().int().nullable(),
  /** Every failing test is named, and the runner came to its own end. */
  complete: z.boolean(),
});
export type TestResults = z.infer<typeof TestResults>;

/** What the runtime itself saw when it ran one check. */
export const CheckEvidence = z.object({
  name: z.string(),
  command: z.string(),
  exitCode: z.number().int().nullable(),
  ending: z.enum(["exited", "deadline", "aborted", "not-started"]),
  tail: z.string(),
  sha256: z.string(),
  bytes: z.number().int(),
  durationMs: z.number(),
  /** The git tree it ran on. */
  tree: z.string(),
  /** Why it ran by another command than the project's own, whose tool is missing: "uv is not here; ran with .venv". */
  ranWith: z.string().optional(),
  /** Missing in what earlier versions wrote. */
  verdict: CheckVerdict.optional(),
  /** Why it has that verdict, in words, where it did not simply pass. */
  why: z.string().optional(),
  /** The tests that it ran, where it names them. */
  tests: z.array(TestResults).optional(),
  /** All that earlier versions knew of a verdict; kept for their clients. */
  excused: z.enum(["failed before", "cannot run"]).optional(),
  /** Whether it was seen to fail when the code was broken for a trial. One that was not is no evidence about the code. */
  bound: z.boolean().optional(),
  /** Files of the tree that it changed while it ran, so that it did not see the tree as it is. */
  changed: z.array(z.string()).optional(),
  at: z.string(),
});
export type CheckEvidence = z.infer<typeof CheckEvidence>;

/** One review loop: who judged, how it ended, and the exact state it was about. */
export const ReviewLoop = z.object({
  key: z.string(),
  phase: z.string(),
  stream: z.number().int().nullable(),
  agent: z.string(),
  outcome: LoopOutcome,
  reviews: z.number().int(),
  revisions: z.number().int(),
  /** The tree, or the hash of the text, that the approval names. */
  approved: z.string().nullable(),
  /** Every approval it gave, by the round and the state it saw: all but one of the last state are void. */
  approvals: z.array(z.object({ round: z.number().int(), saw: z.string() })).optional(),
  /** What stood against it at the end. */
  findings: z.string().nullable(),
});
export type ReviewLoop = z.infer<typeof ReviewLoop>;

export const StepKind = z.enum(["call", "checks", "git", "loop", "phase", "stream", "note"]);
export type StepKind = z.infer<typeof StepKind>;

/** Which model is asked for a name that a pipeline uses. */
export const RunModel = z.object({
  /** As the pipeline, an agent or the environment has it. */
  name: z.string(),
  /** As the provider has it. */
  model: z.string(),
  /** The model of that name is not there, and this one is asked instead. */
  standsIn: z.boolean(),
  /** The embedded rehearsal model plays it. */
  rehearsal: z.literal(true).optional(),
});
export type RunModel = z.infer<typeof RunModel>;

/** One of several tries at a step. One without an end was cut off with the process that made it. */
export const RunAttempt = z.object({ startedAt: z.string(), finishedAt: z.string().nullable(), error: z.string().nullable() });
export type RunAttempt = z.infer<typeof RunAttempt>;

/** One agent call, one command or one decision of a run, as its journal has it. */
export const RunStep = z.object({
  key: z.string(),
  kind: StepKind,
  phase: z.string(),
  stream: z.number().int().nullable(),
  agent: z.string().nullable(),
  /** The model that answered, by the provider's own name; until then the one that is asked. */
  model: z.string().nullable(),
  /** The name that the pipeline asks for, where it is another. */
  asked: z.string().nullable(),
  state: z.enum(["begun", "done", "failed"]),
  attempts: z.number().int(),
  /** The worker on another host that did it; null where it was done here. */
  worker: z.string().nullable().default(null),
  /** Every try at it, oldest first, where a run is shown whole and there was more than one. */
  tries: z.array(RunAttempt).optional(),
  verdict: z.string().nullable(),
  error: z.string().nullable(),
  usage: Usage,
  startedAt: z.string(),
  finishedAt: z.string().nullable(),
});
export type RunStep = z.infer<typeof RunStep>;

/** A piece of what an agent says, as it comes. */
export interface Said {
  /** The call it belongs to. */
  key: string;
  agent: string;
  stream: number | null;
  text: string;
  /** Instead of text: what it did, or what a command of its printed, as plain text. */
  did?: string;
}

/** What a step said and did from one character on. */
export const SaidSoFar = z.object({ from: z.number().int(), text: z.string() });
export type SaidSoFar = z.infer<typeof SaidSoFar>;

/** The same as a client hears it: of which run or plan it is. */
export interface Words extends Said {
  owner: string;
}

export const RunPhase = z.object({
  name: z.string(),
  /** "cancelled" and "interrupted": it was under way when its run was stopped. */
  status: z.enum(["running", "done", "skipped", "failed", "cancelled", "interrupted"]),
  reason: z.string().nullable(),
  startedAt: z.string(),
  finishedAt: z.string().nullable(),
});
export type RunPhase = z.infer<typeof RunPhase>;

export const RunStream = z.object({
  number: z.number().int(),
  taskId: z.string(),
  task: z.string(),
  frontend: z.boolean(),
  dependsOn: z.array(z.string()),
  status: z.enum(["waiting", "running", "done", "failed", "cancelled", "interrupted"]),
  branch: z.string().nullable(),
  tree: z.string().nullable(),
  merged: z.boolean(),
  reason: z.string().nullable(),
});
export type RunStream = z.infer<typeof RunStream>;

/** One of several repositories that a run changes as one piece of work. */
export const RunRepository = z.object({
  projectPath: z.string(),
  branch: z.string().nullable(),
  /** The commit the run began from there. */
  base: z.string().nullable(),
  /** The files of the result there; null before the end. */
  tree: z.string().nullable(),
});
export type RunRepository = z.infer<typeof RunRepository>;

/** A swarm run, drawn from its journal. */
export const Run = z
  .object({
    id: z.string(),
    status: RunStatus,
    outcome: RunOutcome.nullable(),
    /** Why it ended as it did, in a sentence. */
    reason: z.string().nullable(),
    projectPath: z.string(),
    issue: z.string(),
    /** The branch with the result, or null when the work was done in place. */
    branch: z.string().nullable(),
    /** The commit the run began from. */
    base: z.string().nullable(),
    /** The tree the result is. */
    tree: z.string().nullable(),
    /** Where it changes several repositories: all of them, in the order in which they are to be merged, its own last. */
    repositories: z.array(RunRepository).default([]),
    applied: z.boolean(),
    /** The folder in the checkout that the run wrote its documents to; null as long as it wrote none. */
    documents: z.string().nullable().default(null),
    models: z.array(RunModel),
    phases: z.array(RunPhase),
    streams: z.array(RunStream),
    loops: z.array(ReviewLoop),
    /** What the checks said of the commit that the run began from. */
    baseline: z.array(CheckEvidence).default([]),
    /** What was installed before the run began, or could not be. */
    preparation: z.array(CheckEvidence).default([]),
    evidence: z.array(CheckEvidence),
    steps: z.array(RunStep),
    decisions: z.array(z.string()),
    notes: z.array(z.string()),
    usage: Usage,
    conversation: z.string().nullable(),
    squad: z.string().nullable(),
    createdAt: z.string(),
    finishedAt: z.string().nullable(),
  })
  .meta({ id: "Run" });
export type Run = z.infer<typeof Run>;

/** A run that was just begun or resumed, with what a person should know before it works. */
export const BegunRun = Run.extend({ remarks: z.array(z.string()) }).meta({ id: "BegunRun" });
export type BegunRun = z.infer<typeof BegunRun>;

/** A run in a list: without what only `show` needs. */
export const RunSummary = Run.omit({
  steps: true,
  baseline: true,
  preparation: true,
  evidence: true,
  loops: true,
  decisions: true,
  notes: true,
  documents: true,
});
export type RunSummary = z.infer<typeof RunSummary>;

/** What is removed of a run that has ended, and what stays because nothing else has it. */
export const CleanItem = z
  .object({
    run: z.string(),
    status: z.string(),
    projectPath: z.string(),
    bytes: z.number().int(),
    worktrees: z.array(z.string()),
    branches: z.array(z.string()),
    refs: z.number().int(),
    sessions: z.number().int(),
    /** What else goes of the run's own folder. */
    copies: z.array(z.string()),
    /** What stays, a sentence each. */
    kept: z.array(z.string()),
  })
  .meta({ id: "CleanItem" });
export type CleanItem = z.infer<typeof CleanItem>;

export const Cleaned = z.object({
  items: z.array(CleanItem),
  bytes: z.number().int(),
  removed: z.boolean(),
  /** How many records go that an undo would need; missing where they were not asked for. */
  changes: z.number().int().optional(),
});
export type Cleaned = z.infer<typeof Cleaned>;

/** One step with everything that was said in it. */
export const RunStepDetail = RunStep.extend({
  /** What the agent was asked; null for a step that asked nobody, or of a version that did not keep it. */
  prompt: z.string().nullable(),
  reply: z.string().nullable(),
  evidence: z.array(CheckEvidence),
  /** What it says and does while it is at work, as far as it is kept; null for a step that is over. */
  said: SaidSoFar.nullable(),
}).meta({ id: "RunStepDetail" });
export type RunStepDetail = z.infer<typeof RunStepDetail>;

/** The difference between two trees, as git tells it. */
export const RunDiff = z.object({ from: z.string(), to: z.string(), text: z.string() }).meta({ id: "Diff" });
export type RunDiff = z.infer<typeof RunDiff>;
