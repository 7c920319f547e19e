import { z } from "zod";

/** How loud an event is. Urgent is a question to a person, or the failure of something they asked for. */
export const NewsLevel = z.enum(["silent", "normal", "urgent"]);
export type NewsLevel = z.infer<typeof NewsLevel>;

/** News that a person got through any channel. Clients notify by its level. */
export const Notice = z.object({
  level: NewsLevel,
  /** Its kind: an unsolicited reply, a question, its reminder, or an announcement of IO. */
  kind: z.enum(["reply", "approval", "reminder", "news"]),
  /** The id of the message or the approval. */
  about: z.string(),
  conversation: z.string(),
  text: z.string(),
});
export type Notice = z.infer<typeof Notice>;

const Counts = z.object({ messages: z.number().int(), tasks: z.number().int(), runs: z.number().int() });

/** News that quiet hours or a setting held back. */
export const HeldNews = Notice.omit({ level: true }).extend({ at: z.string() });
export type HeldNews = z.infer<typeof HeldNews>;

/** What happened in a period, counted from the records. */
export const Digest = z
  .object({
    since: z.string(),
    until: z.string(),
    done: Counts,
    failed: Counts,
    /** Of what is done: tasks without a test seen to pass, and runs that were not approved. */
    unproven: Counts.omit({ messages: true }),
    waiting: z.object({ approvals: z.number().int() }),
    cost: z.object({
      calls: z.number().int(),
      inputTokens: z.number().int(),
      outputTokens: z.number().int(),
      money: z.number(),
      /** Whether `money` is incomplete because a model has no price. */
      partial: z.boolean(),
    }),
    /** News that was held back, oldest first, at most 20. */
    held: z.array(HeldNews),
    heldCount: z.number().int(),
  })
  .meta({ id: "Digest" });
export type Digest = z.infer<typeof Digest>;

/** Whether a client that shows one conversation should notify: replies and questions of that conversation are visible anyway. */
export const isFromElsewhere = ({ level, kind, conversation }: Notice, shown: string): boolean =>
  level !== "silent" && ((kind !== "reply" && kind !== "approval") || conversation !== shown);
