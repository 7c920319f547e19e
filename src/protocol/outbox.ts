import { z } from "zod";
import { Source } from "./messages.ts";

/** Something that somebody is still to be told: the reply to a message, the result of a task, the end of a run, a question. */
export const Owed = z.object({
  kind: z.enum(["reply", "task", "run", "approval"]),
  /** The id of the message, the task, the run or the approval. */
  about: z.string(),
  conversation: z.string(),
  /** Who asked, and so who is told. */
  source: Source,
  /** What a conversation is told of a task or a run; a reply is read from its message, a question from its approval. */
  text: z.string().nullable(),
  /** The same news has the same key, so that it is owed once. */
  key: z.string(),
});
export type Owed = z.infer<typeof Owed>;

/**
 * What became of something that was handed over: somebody has it, it is kept for whoever fetches it, or there is nobody any
 * more who could be told.
 */
export type Receipt = "delivered" | "kept" | "undeliverable";
