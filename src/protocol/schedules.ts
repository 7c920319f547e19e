import { z } from "zod";
import { Conversation } from "./messages.ts";
import { Cost } from "./usage.ts";

export const CatchUp = z.enum(["once", "skip", "ask"]);
export type CatchUp = z.infer<typeof CatchUp>;

/** Something that is said or done repeatedly, or once later. */
export const Schedule = z
  .object({
    id: z.string(),
    /** As entered: five cron fields, `every 2h`, `daily 09:00`, `weekdays 08:30`, or an ISO time. */
    when: z.string(),
    text: z.string(),
    tz: z.string(),
    /** The squad that gets a task; null for a message or a run. */
    squad: z.string().nullable(),
    /** The project of a run: a folder or a squad. */
    swarm: z.string().nullable(),
    conversation: z.string(),
    /** What to do with the last time that was missed while IO was not running. */
    catchUp: CatchUp,
    /** The greatest age of a missed time, such as `24h`. */
    maxAge: z.string(),
    state: z.enum(["active", "paused", "done"]),
    /** Why it is paused, if no person paused it. */
    reason: z.string().nullable(),
    nextAt: z.string().nullable(),
    createdBy: z.object({ by: z.enum(["person", "model"]), channel: z.string() }),
    createdAt: z.string(),
  })
  .meta({ id: "Schedule" });
export type Schedule = z.infer<typeof Schedule>;

/** A schedule with the usage and cost of everything that it started. */
export const ScheduleWithCost = Schedule.extend({ cost: Cost }).meta({ id: "ScheduleWithCost" });
export type ScheduleWithCost = z.infer<typeof ScheduleWithCost>;

export const NewSchedule = z.strictObject({
  when: z.string().trim().min(1).max(200),
  text: z.string().trim().min(1).max(100_000),
  tz: z.string().max(100).optional(),
  squad: z.string().min(1).max(200).optional(),
  swarm: z.string().min(1).max(4_096).optional(),
  conversation: Conversation.optional(),
  catchUp: CatchUp.optional(),
  maxAge: z.string().max(20).optional(),
});
export type NewSchedule = z.infer<typeof NewSchedule>;

export const OccurrenceState = z.enum(["waiting", "running", "done", "failed", "skipped", "missed"]);
export type OccurrenceState = z.infer<typeof OccurrenceState>;

/** One time at which a schedule was due, and the result. */
export const Occurrence = z
  .object({
    id: z.string(),
    schedule: z.string(),
    dueAt: z.string(),
    state: OccurrenceState,
    reason: z.string().nullable(),
    message: z.string().nullable(),
    task: z.string().nullable(),
    run: z.string().nullable(),
    finishedAt: z.string().nullable(),
  })
  .meta({ id: "Occurrence" });
export type Occurrence = z.infer<typeof Occurrence>;
