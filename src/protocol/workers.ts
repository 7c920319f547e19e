import { z } from "zod";

/** Part of NATS subjects, file names and commands, so it is one plain word. */
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
    /** Running jobs. */
    running: z.number().int(),
    version: z.string(),
    /** Its engine and its sandbox; null before its first report. */
    engine: z.string().nullable(),
    wall: z.string().nullable(),
    /** When it last reported. */
    seenAt: z.string().nullable(),
  })
  .meta({ id: "Worker" });
export type Worker = z.infer<typeof Worker>;
export const WorkerList = z.object({ items: z.array(Worker) });
export type WorkerList = z.infer<typeof WorkerList>;

/** What a worker regularly reports of itself. */
export const Presence = z.object({
  version: z.string().max(100),
  protocol: z.number().int(),
  engine: z.string().max(100),
  wall: z.string().max(100),
  running: z.number().int().min(0).max(10_000),
});
export type Presence = z.infer<typeof Presence>;

/** The daemon's answer to that report. */
export const PresenceAnswer = z.object({
  state: z.enum(["welcome", "drain", "refused"]),
  /** Why the worker is refused, and what to do. */
  reason: z.string().max(1_000).optional(),
});
export type PresenceAnswer = z.infer<typeof PresenceAnswer>;

export const Invited = z
  .object({
    /** Where to join. Secret until it is used: without it nobody can try the code. */
    url: z.string(),
    /** Valid once, and only with the url. */
    code: z.string(),
    expiresAt: z.string(),
  })
  .meta({ id: "Invitation" });
export type Invited = z.infer<typeof Invited>;

/** A job that no worker has started yet. */
export const WaitingJob = z.object({
  id: z.string(),
  /** Which workers may do it: "any", a label, or "host-<worker>". */
  pool: z.string(),
  /** Whether an available worker serves its pool. */
  served: z.boolean(),
});
export type WaitingJob = z.infer<typeof WaitingJob>;

export const ClusterStatus = z
  .object({
    state: z.enum(["off", "starting", "running", "failed"]),
    /** Whether IO runs the server itself; false with `cluster.url`. */
    managed: z.boolean(),
    url: z.string().nullable(),
    /** Only for a server that IO runs. */
    pid: z.number().int().nullable(),
    version: z.string().nullable(),
    /** The problem and what to do; null if there is none. */
    detail: z.string().nullable(),
    /** The number of workers by state, and the workers themselves. */
    workers: z.record(WorkerState, z.number().int()),
    items: z.array(Worker),
    waiting: z.array(WaitingJob),
  })
  .meta({ id: "Cluster" });
export type ClusterStatus = z.infer<typeof ClusterStatus>;
