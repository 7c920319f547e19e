import { z } from "zod";
import { oneLine } from "../lib/quoted.ts";
import { FormField, type PersonForm } from "../protocol/person-form.ts";
import { plain } from "./results.ts";

const MOST_FIELDS = 20;
const LONGEST_MESSAGE = 2_000;

/** Names without invisible characters, so that every screen shows them as they are. */
const Name = z.string().regex(/^[^\p{C}]{1,100}$/u);
const words = (most: number) =>
  z
    .string()
    .transform((text) => oneLine(plain(text), most))
    .optional();
/** Any other key that a server writes, such as `pattern`, is dropped. */
const Field = FormField.extend({ title: words(200), description: words(500), enum: z.array(Name).max(100).optional() });
const Asked = z.object({
  mode: z.literal("form").optional(),
  message: z.string(),
  requestedSchema: z.object({
    properties: z.record(Name, Field).refine((fields) => Object.keys(fields).length <= MOST_FIELDS),
    required: z.array(Name).default([]),
  }),
});

/** The form that a server asks a person to fill in; undefined if IO cannot show it. */
export function readForm(server: string, asked: unknown): PersonForm | undefined {
  const read = Asked.safeParse(asked);
  if (!read.success) return undefined;
  const { message, requestedSchema } = read.data;
  const { properties: fields, required } = requestedSchema;
  return {
    server,
    message: plain(message).slice(0, LONGEST_MESSAGE),
    fields,
    required: required.filter((name) => Object.hasOwn(fields, name)),
  };
}
