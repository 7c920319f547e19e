import { z } from "zod";
import { WaitsFor } from "./approvals.ts";
import { Usage } from "./usage.ts";

export const RunStatus = z.enum(["running", "done", "failed", "cancelled", "interrupted"]);
export type RunStatus = z.infer<typeof RunStatus>;

/**
 * How a run ended. `approved`: every approval, and a check that would notice the change. `untested`: every approval, but no such
 * check. `unapproved`: a missing approval or a failing check. `unchanged`: the result equals the start.
 */
export const RunOutcome = z.enum(["approved", "untested", "unapproved", "unchanged", "failed", "cancelled"]);
export type RunOutcome = z.infer<typeof RunOutcome>;

export const LoopOutcome = z.enum(["approved", "exhausted", "skipped", "failed"]);
export type LoopOutcome = z.infer<typeof LoopOutcome>;

/**
 * The verdict of a check. `as before`: it failed before the run too, with no new failures. `could not run`: it reached no result
 * here.
 */
export const CheckVerdict = z.enum(["passed", "failed", "flaky", "as before", "could not run"]);
export type CheckVerdict = z.infer<typeof CheckVerdict>;

/** The results of one test runner, as read from a check's output. */
export const TestResults = z.object({
  runner: z.string(),
  failed: z.array(z.string()),
  /** Null if the runner does not say. */
  passed: z.number().int().nullable(),
  /** Whether every failing test is named and the runner finished. */
  complete: z.boolean(),
});
export type TestResults = z.infer<typeof TestResults>;

/** What IO itself observed when it ran one check. */
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
  /** Why another command replaced the project's own, whose tool is missing: "uv is not here; ran with .venv". */
  ranWith: z.string().optional(),
  /** Missing in records of earlier versions. */
  verdict: CheckVerdict.optional(),
  /** Why it has that verdict, if it did not simply pass. */
  why: z.string().optional(),
  /** The tests that it ran, if it names them. */
  tests: z.array(TestResults).optional(),
  /** The verdict format of earlier versions; kept for their clients. */
  excused: z.enum(["failed before", "cannot run"]).optional(),
  /** Whether it failed when the code was broken for a trial. If it did not, it is no evidence about the code. */
  bound: z.boolean().optional(),
  /** Files of the tree that it changed while running, so that it did not check the tree as it is. */
  changed: z.array(z.string()).optional(),
  at: z.string(),
});
export type CheckEvidence = z.infer<typeof CheckEvidence>;

/** One review loop: who reviewed, how it ended, and exactly which state it reviewed. */
export const ReviewLoop = z.object({
  key: z.string(),
  phase: z.string(),
  stream: z.number().int().nullable(),
  agent: z.string(),
  outcome: LoopOutcome,
  reviews: z.number().int(),
  revisions: z.number().int(),
  /** The approved tree, or the hash of the approved text. */
  approved: z.string().nullable(),
  /** Every approval, with its round and the state it saw: only approvals of the last state are valid. */
  approvals: z.array(z.object({ round: z.number().int(), saw: z.string() })).optional(),
  /** The findings that remained at the end. */
  findings: z.string().nullable(),
});
export type ReviewLoop = z.infer<typeof ReviewLoop>;

export const StepKind = z.enum(["call", "checks", "git", "loop", "phase", "stream", "note"]);
export type StepKind = z.infer<typeof StepKind>;

/** The model that serves for a name in a pipeline. */
export const RunModel = z.object({
  /** The name used by the pipeline, an agent or the environment. */
  name: z.string(),
  /** The provider's name. */
  model: z.string(),
  /** Whether this model substitutes for a missing one. */
  standsIn: z.boolean(),
  /** Whether the embedded rehearsal model plays it. */
  rehearsal: z.literal(true).optional(),
});
export type RunModel = z.infer<typeof RunModel>;

/** One of several tries at a step. One without an end was cut off with its process. */
export const RunAttempt = z.object({ startedAt: z.string(), finishedAt: z.string().nullable(), error: z.string().nullable() });
export type RunAttempt = z.infer<typeof RunAttempt>;

/** One agent call, command or decision of a run, from its journal. */
export const RunStep = z.object({
  key: z.string(),
  kind: StepKind,
  phase: z.string(),
  stream: z.number().int().nullable(),
  agent: z.string().nullable(),
  /** The model that answered, by its provider's name; until then the one that is asked. */
  model: z.string().nullable(),
  /** The name that the pipeline uses, if it differs. */
  asked: z.string().nullable(),
  state: z.enum(["begun", "done", "failed"]),
  attempts: z.number().int(),
  /** The worker that did it; null if it was done here. */
  worker: z.string().nullable().default(null),
  /** All tries, oldest first, in the details of a run and only if there was more than one. */
  tries: z.array(RunAttempt).optional(),
  verdict: z.string().nullable(),
  error: z.string().nullable(),
  usage: Usage,
  startedAt: z.string(),
  finishedAt: z.string().nullable(),
});
export type RunStep = z.infer<typeof RunStep>;

/** A piece of an agent's output as it arrives. */
export interface Said {
  /** The call it belongs to. */
  key: string;
  agent: string;
  stream: number | null;
  text: string;
  /** Instead of text: what the agent did, or the output of its command, as plain text. */
  did?: string;
}

/** The output of a step from a character position on. */
export const SaidSoFar = z.object({ from: z.number().int(), text: z.string() });
export type SaidSoFar = z.infer<typeof SaidSoFar>;

/** The same for a client, with its run or plan. */
export interface Words extends Said {
  owner: string;
}

export const RunPhase = z.object({
  name: z.string(),
  /** "cancelled" and "interrupted": the phase was running when its run was stopped. */
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
  /** The commit where the run began. */
  base: z.string().nullable(),
  /** The tree of the result; null before the end. */
  tree: z.string().nullable(),
});
export type RunRepository = z.infer<typeof RunRepository>;

/** A swarm run, built from its journal. */
export const Run = z
  .object({
    id: z.string(),
    status: RunStatus,
    /** Missing unless it runs and waits for a person. */
    waitsFor: WaitsFor.optional(),
    outcome: RunOutcome.nullable(),
    /** Why it ended this way, in a sentence. */
    reason: z.string().nullable(),
    projectPath: z.string(),
    issue: z.string(),
    /** The branch with the result; null if the run worked in place. */
    branch: z.string().nullable(),
    /** The commit where the run began. */
    base: z.string().nullable(),
    /** The tree of the result. */
    tree: z.string().nullable(),
    /** All repositories of a run that changes several, in merge order, its own last. */
    repositories: z.array(RunRepository).default([]),
    applied: z.boolean(),
    /** The folder in the checkout with the run's documents; null until it writes one. */
    documents: z.string().nullable().default(null),
    models: z.array(RunModel),
    phases: z.array(RunPhase),
    streams: z.array(RunStream),
    loops: z.array(ReviewLoop),
    /** The results of the checks on the run's starting commit. */
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

/** A run that was just started or resumed, with remarks for the user. */
export const BegunRun = Run.extend({ remarks: z.array(z.string()) }).meta({ id: "BegunRun" });
export type BegunRun = z.infer<typeof BegunRun>;

/** A run in a list, without what only `show` needs. */
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

/** What cleaning removes of an ended run, and what it keeps because nothing else has it. */
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
    /** What else is removed from the run's own folder. */
    copies: z.array(z.string()),
    /** What is kept, one sentence each. */
    kept: z.array(z.string()),
  })
  .meta({ id: "CleanItem" });
export type CleanItem = z.infer<typeof CleanItem>;

export const Cleaned = z.object({
  items: z.array(CleanItem),
  bytes: z.number().int(),
  removed: z.boolean(),
  /** How many undo records are removed; missing if they were not requested. */
  changes: z.number().int().optional(),
});
export type Cleaned = z.infer<typeof Cleaned>;

/** A step with its prompt, reply and output. */
export const RunStepDetail = RunStep.extend({
  /** The agent's prompt; null for a step without one, or of a version that did not store it. */
  prompt: z.string().nullable(),
  reply: z.string().nullable(),
  evidence: z.array(CheckEvidence),
  /** Its output while it runs, as far as it is stored; null once it has ended. */
  said: SaidSoFar.nullable(),
}).meta({ id: "RunStepDetail" });
export type RunStepDetail = z.infer<typeof RunStepDetail>;

/** The diff between two trees. */
export const RunDiff = z.object({ from: z.string(), to: z.string(), text: z.string() }).meta({ id: "Diff" });
export type RunDiff = z.infer<typeof RunDiff>;
