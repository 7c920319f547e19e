import { z } from "zod";

/**
 * The state of a pull request. `planned`: its run has not ended. `waiting`: a person must decide. `publishing`: IO pushes and
 * opens it. `denied`: a person refused. `failed`: it could not be created.
 */
export const PullState = z.enum(["planned", "waiting", "publishing", "open", "merged", "closed", "denied", "failed"]);
export type PullState = z.infer<typeof PullState>;

/** Whether IO does nothing more about it. */
export const isSettled = (state: PullState): boolean => !["planned", "waiting", "publishing"].includes(state);

/** The pull request of a run or a task. */
export const PullRequest = z
  .object({
    id: z.string(),
    owner: z.object({ kind: z.enum(["run", "task"]), id: z.string() }),
    state: PullState,
    /** Why it failed, or what the user should know about it. */
    reason: z.string().nullable(),
    projectPath: z.string(),
    forge: z.enum(["github", "gitea"]).nullable(),
    host: z.string().nullable(),
    /** `owner/name` at the forge. */
    repo: z.string().nullable(),
    branch: z.string().nullable(),
    base: z.string().nullable(),
    /** The commit that was pushed last. */
    commit: z.string().nullable(),
    number: z.number().int().nullable(),
    url: z.string().nullable(),
    draft: z.boolean(),
    /** Whether it is open and cannot be merged, since its base changed in the same places. */
    conflict: z.boolean(),
    labels: z.array(z.string()),
    /** The approval that waits for a person. */
    approval: z.string().nullable(),
    createdAt: z.string(),
    updatedAt: z.string(),
  })
  .meta({ id: "PullRequest" });
export type PullRequest = z.infer<typeof PullRequest>;

/** The state of a pull request in words. */
export const stateOfPull = ({ state, conflict, base }: Pick<PullRequest, "state" | "conflict" | "base">): string =>
  conflict ? `${state}, but in conflict with ${base}` : state;

/** A branch name that git accepts. */
export const Branch = z
  .string()
  .max(250)
  .regex(/^[^\s\p{Cc}~^:?*[\\\-/.][^\s\p{Cc}~^:?*[\\]*$/u, "must be a branch");
const Label = z.string().trim().min(1).max(50);

/** Options for opening a pull request. */
export const PullOptions = z.strictObject({
  draft: z.boolean().optional().describe("Open it as a draft; without this, it is one if the work is not approved."),
  base: Branch.optional().describe("The branch it is to go into; without it the repository's default branch."),
  labels: z.array(Label).max(20).optional(),
});
export type PullOptions = z.infer<typeof PullOptions>;

export const NewPullRequest = PullOptions.extend({
  run: z.string().max(100).optional(),
  task: z.string().max(100).optional(),
});
export type NewPullRequest = z.infer<typeof NewPullRequest>;
