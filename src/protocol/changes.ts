import { z } from "zod";

/** A file that a message or task changed. */
export const ChangedFile = z
  .object({
    /** The project's folder, or the working folder. */
    folder: z.string(),
    /** Relative to that folder. */
    path: z.string(),
    state: z.enum(["added", "changed", "deleted", "renamed", "mode"]),
    /** The earlier name of a renamed file. */
    from: z.string().optional(),
    binary: z.boolean().optional(),
    /** Why an undo would leave it unchanged, if that is already known. */
    kept: z.string().optional(),
  })
  .meta({ id: "ChangedFile" });
export type ChangedFile = z.infer<typeof ChangedFile>;

/** The file changes of a message or task. */
export const Difference = z
  .object({
    /** A unified diff, cut in the middle if long. */
    text: z.string(),
    files: z.array(ChangedFile),
    /** What was not recorded, and why. */
    notes: z.array(z.string()),
    /** Whether it was undone; the next undo then restores it. */
    undone: z.boolean(),
    /** The compared trees, if the result of a task is a branch. */
    from: z.string().optional(),
    to: z.string().optional(),
  })
  .meta({ id: "Difference" });
export type Difference = z.infer<typeof Difference>;

/** The result of an undo. */
export const UndoResult = z
  .object({
    id: z.string(),
    /** Whether the change is now undone; false if an undo was itself undone, or nothing could be restored. */
    undone: z.boolean(),
    /** The restored files. */
    files: z.array(ChangedFile),
    /** The files left unchanged. */
    kept: z.array(z.object({ folder: z.string(), path: z.string(), why: z.string() })),
    notes: z.array(z.string()),
  })
  .meta({ id: "UndoResult" });
export type UndoResult = z.infer<typeof UndoResult>;

/** A message or task that changed files, for a list. */
export const ChangeSummary = z
  .object({
    id: z.string(),
    kind: z.enum(["message", "task"]),
    folders: z.array(z.string()),
    files: z.number().int(),
    undone: z.boolean(),
    createdAt: z.string(),
  })
  .meta({ id: "ChangeSummary" });
export type ChangeSummary = z.infer<typeof ChangeSummary>;
export const ChangeList = z.object({ items: z.array(ChangeSummary), next: z.string().optional() });
