import { z } from "zod";
import { Source } from "./messages.ts";
import { NewsLevel } from "./news.ts";

/**
 * An entry of the outbox: a reply, the result of a task, the end of a run, a question, its reminder before it expires, or an
 * announcement of IO.
 */
export const Owed = z.object({
  kind: z.enum(["reply", "task", "run", "approval", "reminder", "news"]),
  /** The id of the message, task, run or approval. */
  about: z.string(),
  conversation: z.string(),
  /** Who asked, and so who receives it. */
  source: Source,
  /** The text of an announcement, task or run result; a reply is read from its message, a question from its approval. */
  text: z.string().nullable(),
  /** Only for announcements. */
  level: NewsLevel.nullish(),
  /** The same news has the same key, so it is delivered once. */
  key: z.string(),
});
export type Owed = z.infer<typeof Owed>;

/**
 * The result of a delivery: somebody has it, it is kept until somebody fetches it, it waits for the next digest, or nobody can
 * receive it.
 */
export type Receipt = "delivered" | "kept" | "held" | "undeliverable";
