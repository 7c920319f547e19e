import type { z } from "zod";

/** Parses a JSON column; undefined if another version of IO wrote it, or it is damaged. */
export function readJson<T>(schema: z.ZodType<T>, text: unknown): T | undefined {
  if (typeof text !== "string") return undefined;
  try {
    return schema.safeParse(JSON.parse(text)).data;
  } catch {
    // Not JSON: this row is shown as far as possible, and other rows are unaffected.
    return undefined;
  }
}
