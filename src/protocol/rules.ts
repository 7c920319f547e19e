import { z } from "zod";
import { Conversation } from "./messages.ts";

/** A rule of the user, sent to the model in every session as long as it exists. */
export const Rule = z
  .object({
    id: z.string(),
    text: z.string(),
    /** The conversation it applies to; null: all. */
    conversation: z.string().nullable(),
    /** Its origin: said in a conversation through a channel, or added by hand. */
    origin: z.string(),
    createdAt: z.string(),
  })
  .meta({ id: "Rule" });
export type Rule = z.infer<typeof Rule>;

export const NewRule = z.strictObject({
  text: z.string().trim().min(1).max(500).describe("one sentence"),
  conversation: Conversation.optional().describe("where it holds; without it, everywhere"),
});
export type NewRule = z.infer<typeof NewRule>;

/**
 * The heading above the rules, which every request contains, so that neither a shortened conversation nor a new session loses
 * them.
 */
export const RULES_TITLE =
  "Rules the user gave (they hold until the user takes them back, also where this conversation no longer tells of them)";

/** The rules as a section of the system message; "" if there are none. */
export const rulesSection = (lines: string): string => (lines === "" ? "" : `## ${RULES_TITLE}\n${lines}`);
