import { z } from "zod";

/** How somebody came to the API: by the web page, a command in a terminal, Telegram, a program that speaks MCP, an editor, or otherwise. */
export const EditChannel = z.enum(["web", "terminal", "telegram", "api", "mcp", "acp"]);
export type EditChannel = z.infer<typeof EditChannel>;
/** The same without what does not come by the API. */
export type ApiChannel = Exclude<EditChannel, "telegram">;

/** One change of a page: who made it, and in whose work. */
export const PageChange = z
  .object({
    path: z.string(),
    change: z.enum(["written", "deleted"]),
    by: z.enum(["agent", "person"]),
    /** The agent; "person" for a person. */
    actor: z.string(),
    /** The message or task in whose turn it was; null for a person's own edit. */
    owner: z.string().nullable(),
    /** Where an agent was asked; null for a person's own edit, and where it is no longer known. */
    conversation: z.string().nullable(),
    /** What the message or task said, in short; null for a person's own edit, and where it is no longer known. */
    said: z.string().nullable(),
    /** What a person came by; null for an agent. */
    channel: EditChannel.nullable(),
    at: z.string(),
    /** When it was done; the page's file was written between the two. */
    until: z.string(),
  })
  .meta({ id: "PageChange" });
export type PageChange = z.infer<typeof PageChange>;
