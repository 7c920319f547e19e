import { z } from "zod";

/** What is looked for at a repository, and how that goes. */
export const Watch = z
  .object({
    id: z.string(),
    projectPath: z.string(),
    forge: z.enum(["github", "gitea"]),
    host: z.string(),
    /** `owner/name` at the forge. */
    repo: z.string(),
    /** Issues that get this label are worked on. */
    label: z.string().nullable(),
    /** Issues on which somebody writes this are worked on. */
    mention: z.string().nullable(),
    /** Reviews and comments on IO's pull requests are answered. */
    reviews: z.boolean(),
    /** Failed checks of IO's pull requests are worked on. */
    checks: z.boolean(),
    /** How often one pull request is worked on again. */
    maxRounds: z.number().int(),
    state: z.enum(["on", "paused"]),
    /** When the forge was asked last, and when it is asked again. */
    lookedAt: z.string().nullable(),
    nextAt: z.string().nullable(),
    /** What was there. */
    saw: z.string().nullable(),
    /** Why the last look failed. */
    problem: z.string().nullable(),
    createdAt: z.string(),
  })
  .meta({ id: "Watch" });
export type Watch = z.infer<typeof Watch>;

export const TriggerKind = z.enum(["label", "mention", "review", "thread", "comment", "check"]);
export type TriggerKind = z.infer<typeof TriggerKind>;

/**
 * How it stands with something that may set work going: it waits for its turn; IO claims the issue at the forge, starts a run,
 * or works; it is done; it counts for nothing; another IO has it; people have to decide; it failed; IO gave up.
 */
export const TriggerState = z.enum([
  ...["waiting", "claiming", "starting", "working"],
  ...["done", "ignored", "elsewhere", "asked", "failed", "given up"],
] as const);
export type TriggerState = z.infer<typeof TriggerState>;

/** Something at a forge that may set work going. */
export const WatchTrigger = z
  .object({
    id: z.string(),
    watch: z.string(),
    kind: TriggerKind,
    /** Of the issue or the pull request. */
    number: z.number().int(),
    /** Who did it. */
    by: z.string(),
    state: TriggerState,
    /** What became of it, or why nothing did. */
    reason: z.string().nullable(),
    run: z.string().nullable(),
    createdAt: z.string(),
    updatedAt: z.string(),
  })
  .meta({ id: "WatchTrigger" });
export type WatchTrigger = z.infer<typeof WatchTrigger>;

/** A watch with the latest of what it saw. */
export const WatchDetail = Watch.extend({ triggers: z.array(WatchTrigger) }).meta({ id: "WatchDetail" });
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
