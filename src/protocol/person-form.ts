import { z } from "zod";

/** The values that fields of a form take. */
export const FormValue = z.union([z.string().max(20_000), z.number(), z.boolean(), z.array(z.string().max(2_000)).max(100)]);

const Words = z.string().max(600).optional();
const Choices = z.array(z.string().max(200)).max(100);

/** One field, in the part of JSON Schema that the protocols of editors and MCP servers share. */
export const FormField = z.object({
  type: z.enum(["string", "number", "integer", "boolean", "array"]),
  ...{ title: Words, description: Words },
  ...{ minLength: z.number().optional(), maxLength: z.number().optional() },
  ...{ minimum: z.number().optional(), maximum: z.number().optional() },
  format: z.enum(["email", "uri", "date", "date-time"]).optional(),
  enum: Choices.optional(),
  items: z.object({ type: z.literal("string"), enum: Choices }).optional(),
});

/** What an MCP server wants to know from the person in whose turn its tool was called. */
export const PersonForm = z.object({
  server: z.string(),
  message: z.string(),
  fields: z.record(z.string(), FormField),
  required: z.array(z.string()),
});
export type PersonForm = z.infer<typeof PersonForm>;

export const FormAnswer = z.strictObject({
  action: z.enum(["accept", "decline", "cancel"]),
  content: z.record(z.string().max(100), FormValue).optional(),
});
export type FormAnswer = z.infer<typeof FormAnswer>;
