import { z } from "zod";

/** What a program's token grants: `/mcp`, or `/v1` for OpenAI clients. */
export const TokenScope = z.enum(["mcp", "openai"]);
export type TokenScope = z.infer<typeof TokenScope>;

export const NewClientToken = z.strictObject({
  name: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/, "1 to 64 letters, digits, dots, dashes or underscores")
    .describe("which program it is for"),
  for: z.array(TokenScope).min(1, "what it opens: mcp, openai, or both"),
});
export type NewClientToken = z.input<typeof NewClientToken>;

/** A program's token in a list, without the token itself. */
export const ClientToken = z
  .object({ name: z.string(), for: z.array(TokenScope), createdAt: z.string(), lastUsedAt: z.string().nullable() })
  .meta({ id: "ClientToken" });
export type ClientToken = z.infer<typeof ClientToken>;

/** A new token, shown once. */
export const MadeClientToken = NewClientToken.extend({ token: z.string() }).meta({ id: "MadeClientToken" });
export type MadeClientToken = z.infer<typeof MadeClientToken>;

/** A program that can be connected, and what to paste into it. */
export const KnownClient = z
  .object({
    client: z.string(),
    title: z.string(),
    speaks: z.enum(["acp", "mcp", "openai"]),
    where: z.string(),
    text: z.string(),
    /** When a message last came over its protocol; null if none of the latest 5,000 did. */
    lastHeardAt: z.string().nullable(),
  })
  .meta({ id: "KnownClient" });
export type KnownClient = z.infer<typeof KnownClient>;
