import { z } from "zod";
import { isRecord } from "../../lib/is-record.ts";
import type { PhaseSchema } from "./schema.ts";

type Kinds = readonly { name: string; schema: PhaseSchema }[];

/** A file's content without optional keys that are null: null means the same as leaving them out. */
export function withoutNulls(raw: object, schema: z.ZodObject, kinds: Kinds): object {
  return clean(raw, schema, kinds) as object;
}

function clean(value: unknown, schema: unknown, kinds: Kinds): unknown {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault) return clean(value, schema.unwrap(), kinds);
  if (schema instanceof z.ZodArray && Array.isArray(value)) return value.map((each) => clean(each, schema.element, kinds));
  if (schema instanceof z.ZodDiscriminatedUnion && isRecord(value))
    return clean(value, kinds.find(({ name }) => name === value.phase)?.schema, kinds);
  if (!(schema instanceof z.ZodObject) || !isRecord(value)) return value;
  const kept = Object.entries(value).filter(([key, each]) => each !== null || !isOptional(schema.shape[key]));
  return Object.fromEntries(kept.map(([key, each]) => [key, clean(each, schema.shape[key], kinds)]));
}

function isOptional(schema: unknown): boolean {
  return schema instanceof z.ZodOptional || schema instanceof z.ZodDefault;
}
