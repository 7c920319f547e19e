import type { z } from "zod";
import { readJson } from "../../store/read-json.ts";
import type { StepRow } from "../../store/runs.ts";

/** Tells a person that this version cannot read something stored. */
export function unreadable(what: string): string {
  return `${what} was written by another version of IO and cannot be read by this one. Use that version, or start a new run.`;
}

/** A step's result; undefined if there is none that can be read. */
export function readResult<T>(schema: z.ZodType<T>, { result }: Pick<StepRow, "result">): T | undefined {
  return readJson(schema, result);
}
