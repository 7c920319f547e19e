import { z } from "zod";
import { SquadSafety } from "../home/safety-config.ts";
import { WaitsFor } from "./approvals.ts";
import { CallEnd } from "./calls.ts";
import { Failure, Source } from "./messages.ts";
import { Usage } from "./usage.ts";

export const UniverseName = z.enum(["a-team", "transformers", "thundercats", "gi-joe", "aliens", "ghostbusters"]);
export type UniverseName = z.infer<typeof UniverseName>;

export const ModelTier = z.enum(["high", "medium", "low"]);
export type ModelTier = z.infer<typeof ModelTier>;

export const WorkStatus = z.enum(["idle", "working", "error"]);
export type WorkStatus = z.infer<typeof WorkStatus>;

export const SquadSlug = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,62}$/, "1 to 63 lower-case letters, digits or dashes, beginning with a letter or digit");

/** Where the tasks of a squad run: all in the project's folder, or each in its own worktree and branch. */
export const Isolation = z.enum(["none", "worktree"]);
export type Isolation = z.infer<typeof Isolation>;

/** A shell command that checks a project, run at its top. */
export const CheckCommand = z
  .string()
  .trim()
  .min(1)
  .max(500)
  .regex(/^[^\n\r]*$/, "must be a single line");

/** A member of a squad. */
export const Agent = z
  .object({
    characterName: z.string(),
    roleTitle: z.string(),
    charter: z.string(),
    modelTier: ModelTier,
    status: WorkStatus,
    createdAt: z.string(),
  })
  .meta({ id: "Agent" });
export type Agent = z.infer<typeof Agent>;

/** The lasting team of one project. */
export const Squad = z
  .object({
    slug: z.string(),
    name: z.string(),
    projectPath: z.string(),
    universe: UniverseName,
    status: WorkStatus,
    /** Its own safety settings, beyond the global ones. */
    safety: SquadSafety.default({}),
    isolation: Isolation.default("none"),
    /** The check commands that a person chose, instead of those found in the project. */
    checks: z.array(z.string()).nullable().default(null),
    /** Whether the project's folder is missing. */
    missing: z.boolean().default(false),
    createdAt: z.string(),
    updatedAt: z.string(),
  })
  .meta({ id: "Squad" });
export type Squad = z.infer<typeof Squad>;

/** The files with a project's conventions, and those that were not read, with the reason. */
export const ProjectConventions = z.object({ files: z.array(z.string()), refused: z.array(z.string()) });
export type ProjectConventions = z.infer<typeof ProjectConventions>;

/** A line of a squad's decision log. */
export const Decision = z
  .object({
    id: z.number().int(),
    squad: z.string(),
    decision: z.string(),
    context: z.string().nullable(),
    author: z.string().nullable(),
    createdAt: z.string(),
  })
  .meta({ id: "Decision" });
export type Decision = z.infer<typeof Decision>;

export const TaskStatus = z.enum(["queued", "running", "done", "failed", "cancelled"]);
export type TaskStatus = z.infer<typeof TaskStatus>;

/** What IO itself observed of a task's work, whatever the agent claims. */
export const TaskEvidence = z
  .looseObject({
    filesChanged: z.array(z.string()),
    commands: z.array(
      z.object({
        command: z.string(),
        exitCode: z.number().int().nullable(),
        /** How its call ended, if it is known not to have ended by itself. */
        state: CallEnd.exclude(["done"]).optional(),
      }),
    ),
    treeBefore: z.string().nullable(),
    treeAfter: z.string().nullable(),
    /** The last command that looks like a test. */
    lastTest: z.object({ command: z.string(), exitCode: z.number().int().nullable() }).nullable().optional(),
    /** What the above says about the agent's claim. */
    verdict: z.string().optional(),
    /** Whether a test that would notice was seen to pass after the last change. */
    proven: z.boolean().optional(),
    /** Tasks that worked in the same folder meanwhile: a changed file may be theirs. */
    alongside: z.array(z.string()).optional(),
    /** Files that only other tasks are known to have changed meanwhile. */
    byOthers: z.array(z.object({ file: z.string(), task: z.string() })).optional(),
    /** The branch with the result and its starting commit, if the task had its own worktree. */
    branch: z.string().optional(),
    base: z.string().optional(),
    /** The other repositories that the task worked on, each with the same branch, in the order in which they were named. */
    others: z
      .array(
        z.object({
          projectPath: z.string(),
          base: z.string(),
          treeBefore: z.string(),
          treeAfter: z.string().nullable(),
          filesChanged: z.array(z.string()),
        }),
      )
      .optional(),
  })
  .meta({ id: "Evidence" });
export type TaskEvidence = z.infer<typeof TaskEvidence>;

/** Who asked for a task, and so who gets its result. */
export const Origin = z.object({ conversation: z.string(), source: Source, messageId: z.string().optional() });
export type Origin = z.infer<typeof Origin>;

/** Work delegated to an agent, in the background. */
export const Task = z
  .object({
    id: z.string(),
    squad: z.string(),
    agent: z.string(),
    description: z.string(),
    /** The folders of the other projects that are changed together with the squad's own. */
    with: z.array(z.string()).default([]),
    status: TaskStatus,
    /** Missing unless it runs and waits for a person. */
    waitsFor: WaitsFor.optional(),
    result: z.string().nullable(),
    error: Failure.nullable(),
    evidence: TaskEvidence.nullable(),
    origin: Origin.nullable(),
    /** Why this agent and this model. */
    reason: z.string().nullable(),
    model: z.string().nullable(),
    attempts: z.number().int(),
    /** The worker that did it; null if it was done here. */
    worker: z.string().nullable().default(null),
    createdAt: z.string(),
    startedAt: z.string().nullable(),
    finishedAt: z.string().nullable(),
    usage: Usage,
  })
  .meta({ id: "Task" });
export type Task = z.infer<typeof Task>;

/** One observation of a task while it ran. */
export const Activity = z
  .object({
    id: z.number().int(),
    kind: z.enum(["queued", "joined", "started", "resumed", "model", "tool", "decision", "ended"]),
    summary: z.string(),
    data: z.record(z.string(), z.unknown()).nullable(),
    createdAt: z.string(),
  })
  .meta({ id: "Activity" });
export type Activity = z.infer<typeof Activity>;
