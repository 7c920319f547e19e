import { z } from "zod";
import { Source } from "./messages.ts";
import { NewsLevel } from "./news.ts";

/**
 * Something that somebody is still to be told: the reply to a message, the result of a task, the end of a run, a question, a
 * question once more before it expires, or news of IO's own.
 */
export const Owed = z.object({
  kind: z.enum(["reply", "task", "run", "approval", "reminder", "news"]),
  /** The id of the message, the task, the run or the approval. */
  about: z.string(),
  conversation: z.string(),
  /** Who asked, and so who is told. */
  source: Source,
  /** What a conversation is told of a task or a run, or the news itself; a reply is read from its message, a question from its approval. */
  text: z.string().nullable(),
  /** Of news of IO's own. */
  level: NewsLevel.nullish(),
  /** The same news has the same key, so that it is owed once. */
  key: z.string(),
});
export type Owed = z.infer<typeof Owed>;

/**
 * What became of something that was handed over: somebody has it, it is kept for whoever fetches it, it is held back for the
 * next digest, or there is nobody any more who could be told.
 */
export type Receipt = "delivered" | "kept" | "held" | "undeliverable";
