import { z } from "zod";

/** A file that a message or task changed. */
export const ChangedFile = z
  .object({
    /** The project's folder, or the one that was worked in. */
    folder: z.string(),
    /** Relative to that folder. */
    path: z.string(),
    state: z.enum(["added", "changed", "deleted", "renamed", "mode"]),
    /** What a renamed file was called before. */
    from: z.string().optional(),
    binary: z.boolean().optional(),
    /** Why an undo leaves it as it is, where that is known already. */
    kept: z.string().optional(),
  })
  .meta({ id: "ChangedFile" });
export type ChangedFile = z.infer<typeof ChangedFile>;

/** What a message or task changed in files. */
export const Difference = z
  .object({
    /** A unified difference, cut in the middle if long. */
    text: z.string(),
    files: z.array(ChangedFile),
    /** What was not kept, and why. */
    notes: z.array(z.string()),
    /** Whether it was undone, so that the next undo does it again. */
    undone: z.boolean(),
    /** The trees that were compared, where the result of a task is a branch. */
    from: z.string().optional(),
    to: z.string().optional(),
  })
  .meta({ id: "Difference" });
export type Difference = z.infer<typeof Difference>;

/** What came of an undo. */
export const UndoResult = z
  .object({
    id: z.string(),
    /** Whether it counts as undone now; false where an undo was itself undone, or nothing could be brought back. */
    undone: z.boolean(),
    /** The files that were brought back. */
    files: z.array(ChangedFile),
    /** The files that were left as they are. */
    kept: z.array(z.object({ folder: z.string(), path: z.string(), why: z.string() })),
    notes: z.array(z.string()),
  })
  .meta({ id: "UndoResult" });
export type UndoResult = z.infer<typeof UndoResult>;

/** A message or task that changed files, in a line. */
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
