import type { z } from "zod";
import type { StepRow } from "../../store/runs.ts";

/** What a person is told of something stored that this version cannot read. */
export function unreadable(what: string): string {
  return `${what} was written by another version of IO and cannot be read by this one. Use that version, or start a new run.`;
}

/** Reads stored JSON; undefined if it is none, or if another version wrote it in another shape. */
export function readStored<T>(schema: z.ZodType<T>, text: string): T | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return undefined;
  }
  return schema.safeParse(value).data;
}

/** A step's result; undefined if there is none that can be read. */
export function readResult<T>(schema: z.ZodType<T>, { result }: Pick<StepRow, "result">): T | undefined {
  return result === null ? undefined : readStored(schema, result);
}
