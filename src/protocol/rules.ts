import { z } from "zod";
import { Conversation } from "./messages.ts";

/** Something that the user ruled: told to the model in every session for as long as it stands. */
export const Rule = z
  .object({
    id: z.string(),
    text: z.string(),
    /** Where it holds; null: everywhere. */
    conversation: z.string().nullable(),
    /** How it came: said in a conversation by a channel, or added by hand. */
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

/** Above the rules wherever they are told: with every request, so that neither a shortened conversation nor a new session loses them. */
export const RULES_TITLE =
  "Rules the user gave (they hold until the user takes them back, also where this conversation no longer tells of them)";

/** The part of a system message that tells them; "" where there are none. */
export const rulesSection = (lines: string): string => (lines === "" ? "" : `## ${RULES_TITLE}\n${lines}`);
