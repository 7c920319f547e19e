import type { z } from "zod";

/** What a column of JSON holds; undefined when it was written by another version of IO, or is damaged. */
export function readJson<T>(schema: z.ZodType<T>, text: unknown): T | undefined {
  if (typeof text !== "string") return undefined;
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    // Not JSON at all: the one row is told as far as it can be, and the others are not touched by it.
    return undefined;
  }
}
