import { z } from "zod";
import { RunModel } from "./runs.ts";
import { Usage } from "./usage.ts";

/** A command that a run would check the project with. */
export const PlannedCheck = z.object({
  command: z.string(),
  /** The folder it is run in, relative to the project. */
  cwd: z.string(),
  /** The file or the setting that it comes from; null where no file names it and such a project is usually checked so. */
  from: z.string().nullable(),
  /** Whether it is run only for the packages that a change concerns. */
  perPackage: z.boolean(),
});
export type PlannedCheck = z.infer<typeof PlannedCheck>;

/** What a plan came to. */
export const PlanningResult = z.object({
  /** Where plan.md was written. */
  path: z.string(),
  requirements: z.string(),
  analysis: z.string(),
  rounds: z.array(z.object({ questions: z.string(), answer: z.string() })),
  /** Which model was asked for which name. */
  model: RunModel,
  /** The models that answered, by the provider's own names. */
  served: z.array(z.string()),
  usage: Usage,
  /** What a run of the plan would be checked with. */
  checks: z.array(PlannedCheck).default([]),
});
export type PlanningResult = z.infer<typeof PlanningResult>;

/** A plan in the making: the pm asks, a person answers, an engineer analyses, and plan.md is written. */
export const Planning = z
  .object({
    id: z.string(),
    projectPath: z.string(),
    issue: z.string(),
    status: z.enum(["thinking", "asking", "done", "failed", "cancelled"]),
    /** What the pm wants to know, while it waits for an answer. */
    questions: z.string().nullable(),
    /** How often it has asked. */
    round: z.number().int(),
    /** Where the plan was written. */
    path: z.string().nullable(),
    requirements: z.string().nullable(),
    error: z.string().nullable(),
    /** The model that is asked. */
    model: RunModel.nullable().default(null),
    /** Whose turn it is, and how many turns were begun. */
    agent: z.string().nullable().default(null),
    turns: z.number().int().default(0),
    /** Everything that came out of it; null until it is done. */
    result: PlanningResult.nullable().default(null),
    createdAt: z.string(),
    finishedAt: z.string().nullable(),
  })
  .meta({ id: "Planning" });
export type Planning = z.infer<typeof Planning>;
