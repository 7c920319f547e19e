import { z } from "zod";
import { NewsFilter } from "../home/news-config.ts";
import { Mode } from "../home/safety-config.ts";
import { WaitsFor } from "./approvals.ts";
import { Conversation } from "./messages.ts";

/** A conversation in a list. */
export const ConversationInfo = z
  .object({
    name: z.string(),
    /** The title that a person gave, or else the first message, shortened; null before either. */
    title: z.string().nullable(),
    /** The project folder that it works in. */
    folder: z.string().nullable(),
    /** Null: the global mode. */
    mode: Mode.nullable(),
    /** Null: the default model. */
    model: z.string().nullable(),
    /** Which news is sent at once, if not all. */
    news: NewsFilter.optional(),
    lastMessageAt: z.string().nullable(),
    /** Answers that nobody has seen. */
    unread: z.number().int(),
    /** Messages with a running turn: 0 or 1. */
    running: z.number().int(),
    /** Missing unless that turn waits for a person. */
    waitsFor: WaitsFor.optional(),
    /** Messages that wait in its queue. */
    waiting: z.number().int(),
    /** How many messages are stored. */
    messages: z.number().int(),
  })
  .meta({ id: "Conversation" });
export type ConversationInfo = z.infer<typeof ConversationInfo>;

export const ConversationList = z.object({ items: z.array(ConversationInfo), next: z.string().optional() });
export type ConversationList = z.infer<typeof ConversationList>;

const Folder = z.string().min(1).max(4_096);

/** What a person may change. Omitted keys stay; null resets to the default. */
export const ConversationChange = z.strictObject({
  folder: Folder.nullable().optional(),
  title: z.string().trim().min(1).max(200).nullable().optional(),
  mode: Mode.nullable().optional(),
  model: z.string().trim().min(1).max(200).nullable().optional(),
  news: NewsFilter.nullable().optional(),
});
export type ConversationChange = z.infer<typeof ConversationChange>;

/** Selects a conversation to open for a person in a folder. */
export const OpenConversation = z.strictObject({
  folder: Folder.regex(/^(?:\/|[A-Za-z]:[\\/])/, "a whole path")
    .optional()
    .describe("where the person stands"),
  name: Conversation.optional().describe("the conversation with this name; a new one belongs to the project around the folder"),
  last: z.boolean().optional().describe("the one that was used last in this project, or outside of any"),
});
export type OpenConversation = z.infer<typeof OpenConversation>;

/** The result of deleting a conversation. */
export const DeletedConversation = z.object({
  name: z.string(),
  /** How many messages were deleted. */
  messages: z.number().int(),
  /** How many of them were waiting or running, and were cancelled first. */
  cancelled: z.number().int(),
});
export type DeletedConversation = z.infer<typeof DeletedConversation>;
