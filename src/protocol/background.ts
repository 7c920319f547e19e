import { z } from "zod";

/** A running or finished background command. */
export const BackgroundCommand = z
  .object({
    id: z.string(),
    command: z.string(),
    /** Its working folder. */
    folder: z.string(),
    /** The owner of the call that started it. */
    owner: z.object({ kind: z.enum(["message", "task", "run"]), id: z.string() }),
    conversation: z.string().nullable(),
    state: z.enum(["running", "ended", "stopped", "failed"]),
    /** Null while it runs, and if a signal ended it. */
    exitCode: z.number().int().nullable(),
    startedAt: z.string(),
    finishedAt: z.string().nullable(),
  })
  .meta({ id: "BackgroundCommand" });
export type BackgroundCommand = z.infer<typeof BackgroundCommand>;

/** The same with its latest output. */
export const BackgroundOutput = BackgroundCommand.extend({
  lines: z.array(z.string()),
  /** How many lines it has printed. */
  total: z.number().int(),
}).meta({ id: "BackgroundOutput" });
export type BackgroundOutput = z.infer<typeof BackgroundOutput>;

export const BackgroundList = z.object({ items: z.array(BackgroundOutput) }).meta({ id: "BackgroundList" });
export type BackgroundList = z.infer<typeof BackgroundList>;
