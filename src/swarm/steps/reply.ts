import { z } from "zod";

/** An agent's answer, or why there is none. */
export const Reply = z.discriminatedUnion("ok", [
  z.object({ ok: z.literal(true), text: z.string() }),
  z.object({ ok: z.literal(false), reason: z.string() }),
]);
export type Reply = z.infer<typeof Reply>;
