import { z } from "zod";

/** How a person came to a page: by the web page, a command in a terminal, or another client of the API. */
export const EditChannel = z.enum(["web", "terminal", "api"]);
export type EditChannel = z.infer<typeof EditChannel>;

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
    /** What a person came by; null for an agent. */
    channel: EditChannel.nullable(),
    at: z.string(),
    /** When it was done; the page's file was written between the two. */
    until: z.string(),
  })
  .meta({ id: "PageChange" });
export type PageChange = z.infer<typeof PageChange>;
