import { z } from "zod";

/** Stands in subjects, file names and commands, so it is one plain word. */
export const WorkerName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,39}$/, "must be 1 to 40 small letters, digits and hyphens, and begin with a letter or digit")
  .refine((name) => name !== "daemon", "must not be the daemon's own name");
export const WorkerLabel = z
  .string()
  .regex(/^[a-z0-9][a-z0-9-]{0,39}$/, "must be 1 to 40 small letters, digits and hyphens, and begin with a letter or digit")
  .refine((label) => !label.startsWith("host-"), 'must not begin with "host-", which stands for one worker');
export const WorkerLabels = z.array(WorkerLabel).max(20);
export const WorkerCapacity = z.number().int().min(1).max(1_000);

export const WorkerState = z.enum(["ready", "busy", "draining", "lost"]);
export type WorkerState = z.infer<typeof WorkerState>;

export const Worker = z
  .object({
    name: z.string(),
    state: WorkerState,
    labels: z.array(z.string()),
    capacity: z.number().int(),
    /** Jobs under way. */
    running: z.number().int(),
    version: z.string(),
    /** Which engine it asks, and how its commands are kept from what is not theirs; null before it was first heard of. */
    engine: z.string().nullable(),
    wall: z.string().nullable(),
    /** When it was last heard of. */
    seenAt: z.string().nullable(),
  })
  .meta({ id: "Worker" });
export type Worker = z.infer<typeof Worker>;
export const WorkerList = z.object({ items: z.array(Worker) });
export type WorkerList = z.infer<typeof WorkerList>;

/** What a worker says of itself, again and again. */
export const Presence = z.object({
  version: z.string().max(100),
  protocol: z.number().int(),
  engine: z.string().max(100),
  wall: z.string().max(100),
  running: z.number().int().min(0).max(10_000),
});
export type Presence = z.infer<typeof Presence>;

/** What the daemon answers to it. */
export const PresenceAnswer = z.object({
  state: z.enum(["welcome", "drain", "refused"]),
  /** Why it is refused, and what to do. */
  reason: z.string().max(1_000).optional(),
});
export type PresenceAnswer = z.infer<typeof PresenceAnswer>;

export const Invited = z
  .object({
    /** Where to join. It is a secret until it is used: without it nobody can try the code. */
    url: z.string(),
    /** Good once, and with the url only. */
    code: z.string(),
    expiresAt: z.string(),
  })
  .meta({ id: "Invitation" });
export type Invited = z.infer<typeof Invited>;

/** A job that nobody has taken on yet. */
export const WaitingJob = z.object({
  id: z.string(),
  /** Who may do it: "any", a label, or "host-<worker>". */
  pool: z.string(),
  /** Whether a worker that is there serves its pool. */
  served: z.boolean(),
});
export type WaitingJob = z.infer<typeof WaitingJob>;

export const ClusterStatus = z
  .object({
    state: z.enum(["off", "starting", "running", "failed"]),
    /** Whether IO runs the server itself; false for one by `cluster.url`. */
    managed: z.boolean(),
    url: z.string().nullable(),
    /** Of the server that IO runs. */
    pid: z.number().int().nullable(),
    version: z.string().nullable(),
    /** What is the matter and what to do; null when all is well. */
    detail: z.string().nullable(),
    /** How many there are of each state, and who they are. */
    workers: z.record(WorkerState, z.number().int()),
    items: z.array(Worker),
    waiting: z.array(WaitingJob),
  })
  .meta({ id: "Cluster" });
export type ClusterStatus = z.infer<typeof ClusterStatus>;
