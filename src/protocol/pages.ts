import { z } from "zod";

/** The channel of a request: the web page, a terminal command, Telegram, an MCP client, an editor, or another API client. */
export const EditChannel = z.enum(["web", "terminal", "telegram", "api", "mcp", "acp"]);
export type EditChannel = z.infer<typeof EditChannel>;
/** The channels that use the API. */
export type ApiChannel = Exclude<EditChannel, "telegram">;

/** One change of a page: who made it, and during which work. */
export const PageChange = z
  .object({
    path: z.string(),
    change: z.enum(["written", "deleted"]),
    by: z.enum(["agent", "person"]),
    /** The agent; "person" for a person. */
    actor: z.string(),
    /** The message or task whose turn it was; null for a person's own edit. */
    owner: z.string().nullable(),
    /** The conversation that asked the agent; null for a person's own edit, or if it is no longer known. */
    conversation: z.string().nullable(),
    /** The text of the message or task, shortened; null for a person's own edit, or if it is no longer known. */
    said: z.string().nullable(),
    /** The person's channel; null for an agent. */
    channel: EditChannel.nullable(),
    at: z.string(),
    /** When the change ended; the page's file was written between `at` and this. */
    until: z.string(),
  })
  .meta({ id: "PageChange" });
export type PageChange = z.infer<typeof PageChange>;
