import { z } from "zod";
import { PullRequest } from "./pulls.ts";

/** A watched repository, what IO looks for there, and its state. */
export const Watch = z
  .object({
    id: z.string(),
    projectPath: z.string(),
    forge: z.enum(["github", "gitea"]),
    host: z.string(),
    /** `owner/name` at the forge. */
    repo: z.string(),
    /** Issues with this label are worked on. */
    label: z.string().nullable(),
    /** Issues with this text in a comment or description are worked on. */
    mention: z.string().nullable(),
    /** Whether reviews and comments on IO's pull requests are answered. */
    reviews: z.boolean(),
    /** Whether failed checks of IO's pull requests are worked on. */
    checks: z.boolean(),
    /** How often one pull request is reworked at most. */
    maxRounds: z.number().int(),
    state: z.enum(["on", "paused"]),
    /** The times of the last and the next query. */
    lookedAt: z.string().nullable(),
    nextAt: z.string().nullable(),
    /** What the last query found. */
    saw: z.string().nullable(),
    /** Why the last query failed. */
    problem: z.string().nullable(),
    createdAt: z.string(),
  })
  .meta({ id: "Watch" });
export type Watch = z.infer<typeof Watch>;

export const TriggerKind = z.enum(["label", "mention", "review", "thread", "comment", "check"]);
export type TriggerKind = z.infer<typeof TriggerKind>;

/**
 * The state of a trigger. `claiming`: IO claims the issue at the forge. `ignored`: it does not count. `elsewhere`: another IO has
 * it. `asked`: people must decide. `held`: a failed check that waits for others to end.
 */
export const TriggerState = z.enum([
  ...["held", "waiting", "claiming", "starting", "working"],
  ...["done", "ignored", "elsewhere", "asked", "failed", "given up"],
] as const);
export type TriggerState = z.infer<typeof TriggerState>;

/** An event at a forge that may start work. */
export const WatchTrigger = z
  .object({
    id: z.string(),
    watch: z.string(),
    kind: TriggerKind,
    /** The issue or pull request. */
    number: z.number().int(),
    /** Who caused it. */
    by: z.string(),
    state: TriggerState,
    /** The result, or why there is none. */
    reason: z.string().nullable(),
    run: z.string().nullable(),
    createdAt: z.string(),
    updatedAt: z.string(),
  })
  .meta({ id: "WatchTrigger" });
export type WatchTrigger = z.infer<typeof WatchTrigger>;

/** A watch with its latest triggers and IO's open pull requests. */
export const WatchDetail = Watch.extend({
  triggers: z.array(WatchTrigger),
  pulls: z.array(PullRequest.pick({ number: true, url: true, base: true, state: true, conflict: true })),
}).meta({ id: "WatchDetail" });
export type WatchDetail = z.infer<typeof WatchDetail>;

export const NewWatch = z.strictObject({
  project: z.string().min(1).max(4_096).describe("The folder of a project, or a squad."),
  label: z.string().trim().min(1).max(50).optional().describe("Work on issues that get this label."),
  mention: z
    .string()
    .regex(/^@?[A-Za-z0-9][A-Za-z0-9._-]{0,60}$/, "must be a name, such as @io")
    .optional()
    .describe("Work on issues on which somebody writes this name."),
  reviews: z.boolean().default(false).describe("Answer reviews of and comments on IO's pull requests."),
  checks: z.boolean().default(false).describe("Work on failed checks of IO's pull requests."),
  maxRounds: z.number().int().min(1).max(20).default(3).describe("How often one pull request is worked on again."),
});
export type NewWatch = z.infer<typeof NewWatch>;
