import { z } from "zod";

/** The state of a channel. `conflict`: another program uses the same account. `refused`: the other side rejects IO. */
export const ChannelState = z.enum(["off", "starting", "connected", "unreachable", "conflict", "refused"]);
export type ChannelState = z.infer<typeof ChannelState>;

export const ChannelInfo = z
  .object({
    name: z.string(),
    state: ChannelState,
    /** Since when it has this state. */
    since: z.string(),
    /** The problem and what to do; null if there is none. */
    detail: z.string().nullable(),
  })
  .meta({ id: "Channel" });
export type ChannelInfo = z.infer<typeof ChannelInfo>;

export const TelegramStatus = ChannelInfo.extend({
  /** The bot's user name, once Telegram has reported it. */
  bot: z.string().nullable(),
  /** The served user, and whether the configuration or a pairing names them. */
  user: z.object({ id: z.number().int(), name: z.string().nullable(), by: z.enum(["config", "pairing"]) }).nullable(),
  /** Pairing codes that were issued and not used yet. */
  pending: z.number().int(),
  /** Until when no code is accepted, after too many wrong ones. */
  lockedUntil: z.string().nullable(),
  strangers: z.object({ people: z.number().int(), messages: z.number().int() }),
  topics: z.boolean(),
  transcriber: z.boolean(),
}).meta({ id: "Telegram" });
export type TelegramStatus = z.infer<typeof TelegramStatus>;

export const Paired = z.object({ userId: z.number().int(), name: z.string() });
export type Paired = z.infer<typeof Paired>;
