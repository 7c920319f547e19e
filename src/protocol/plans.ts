import { z } from "zod";
import { RunModel } from "./runs.ts";
import { Usage } from "./usage.ts";

/** A command with which a run would check the project. */
export const PlannedCheck = z.object({
  command: z.string(),
  /** Its working folder, relative to the project. */
  cwd: z.string(),
  /** The file or setting that names it; null if none does and such projects usually use it. */
  from: z.string().nullable(),
  /** Whether it runs only for the packages that a change affects. */
  perPackage: z.boolean(),
});
export type PlannedCheck = z.infer<typeof PlannedCheck>;

/** The result of a plan. */
export const PlanningResult = z.object({
  /** The path of plan.md. */
  path: z.string(),
  requirements: z.string(),
  analysis: z.string(),
  rounds: z.array(z.object({ questions: z.string(), answer: z.string() })),
  /** The model that was asked, by the name in the pipeline and at the provider. */
  model: RunModel,
  /** The models that answered, by their provider's names. */
  served: z.array(z.string()),
  usage: Usage,
  /** The checks that a run of the plan would use. */
  checks: z.array(PlannedCheck).default([]),
});
export type PlanningResult = z.infer<typeof PlanningResult>;

/** A plan in progress: the pm asks, a person answers, an engineer analyses, and plan.md is written. */
export const Planning = z
  .object({
    id: z.string(),
    projectPath: z.string(),
    issue: z.string(),
    status: z.enum(["thinking", "asking", "done", "failed", "cancelled"]),
    /** The pm's questions, while it waits for an answer. */
    questions: z.string().nullable(),
    /** How often it has asked. */
    round: z.number().int(),
    /** The path of the written plan. */
    path: z.string().nullable(),
    requirements: z.string().nullable(),
    error: z.string().nullable(),
    /** The model that is asked. */
    model: RunModel.nullable().default(null),
    /** The agent whose turn it is, and how many turns were started. */
    agent: z.string().nullable().default(null),
    turns: z.number().int().default(0),
    /** The whole result; null until it is done. */
    result: PlanningResult.nullable().default(null),
    createdAt: z.string(),
    finishedAt: z.string().nullable(),
  })
  .meta({ id: "Planning" });
export type Planning = z.infer<typeof Planning>;
