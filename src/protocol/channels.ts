import { z } from "zod";

/**
 * How a channel stands: switched off, on its way, serving; out of reach; pushed aside by another program that uses the same
 * account; or turned away by the other side.
 */
export const ChannelState = z.enum(["off", "starting", "connected", "unreachable", "conflict", "refused"]);
export type ChannelState = z.infer<typeof ChannelState>;

export const ChannelInfo = z
  .object({
    name: z.string(),
    state: ChannelState,
    /** Since when it stands so. */
    since: z.string(),
    /** What is the matter and what to do; null when all is well. */
    detail: z.string().nullable(),
  })
  .meta({ id: "Channel" });
export type ChannelInfo = z.infer<typeof ChannelInfo>;

export const TelegramStatus = ChannelInfo.extend({
  /** The bot's user name, once Telegram has told it. */
  bot: z.string().nullable(),
  /** Who is served, and whether the config or a pairing says so. */
  user: z.object({ id: z.number().int(), name: z.string().nullable(), by: z.enum(["config", "pairing"]) }).nullable(),
  /** Codes that were given out and not used yet. */
  pending: z.number().int(),
  /** Until when no code is taken, after too many wrong ones. */
  lockedUntil: z.string().nullable(),
  strangers: z.object({ people: z.number().int(), messages: z.number().int() }),
  topics: z.boolean(),
  transcriber: z.boolean(),
}).meta({ id: "Telegram" });
export type TelegramStatus = z.infer<typeof TelegramStatus>;

export const Paired = z.object({ userId: z.number().int(), name: z.string() });
export type Paired = z.infer<typeof Paired>;
