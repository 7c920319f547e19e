import { z } from "zod";

/** A command that runs in the background, or did. */
export const BackgroundCommand = z
  .object({
    id: z.string(),
    command: z.string(),
    /** Where it was started. */
    folder: z.string(),
    /** Whose call started it. */
    owner: z.object({ kind: z.enum(["message", "task", "run"]), id: z.string() }),
    conversation: z.string().nullable(),
    state: z.enum(["running", "ended", "stopped", "failed"]),
    /** Null while it runs, and for one that a signal ended. */
    exitCode: z.number().int().nullable(),
    startedAt: z.string(),
    finishedAt: z.string().nullable(),
  })
  .meta({ id: "BackgroundCommand" });
export type BackgroundCommand = z.infer<typeof BackgroundCommand>;

/** The same with what it printed last. */
export const BackgroundOutput = BackgroundCommand.extend({
  lines: z.array(z.string()),
  /** How many lines it has printed. */
  total: z.number().int(),
}).meta({ id: "BackgroundOutput" });
export type BackgroundOutput = z.infer<typeof BackgroundOutput>;

export const BackgroundList = z.object({ items: z.array(BackgroundOutput) }).meta({ id: "BackgroundList" });
export type BackgroundList = z.infer<typeof BackgroundList>;
