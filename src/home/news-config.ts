import { z } from "zod";

const TIME = "(?:[01]\\d|2[0-3]):[0-5]\\d";

/** Which news of a conversation or squad is delivered at once; the rest appears in the next digest. */
export const NewsFilter = z.enum(["all", "urgent", "none"]);
export type NewsFilter = z.infer<typeof NewsFilter>;

export const NewsConfig = z.strictObject({
  quietHours: z
    .string()
    .regex(new RegExp(`^${TIME}-${TIME}$`), 'must be two times such as "22:00-07:00"')
    .refine((hours) => hours.slice(0, 5) !== hours.slice(6), "must not begin and end at the same time")
    .optional()
    .describe("when only urgent news goes out, such as `22:00-07:00`, by the clock of the machine"),
  digest: z
    .string()
    .regex(new RegExp(`^${TIME}$`), 'must be a time such as "09:00"')
    .optional()
    .describe("when to send one message a day that says what was done, what failed, what waits and what it cost"),
});
export type NewsConfig = z.infer<typeof NewsConfig>;
