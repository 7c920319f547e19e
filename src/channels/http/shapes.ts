import type { z } from "@hono/zod-openapi";
import { ApiError } from "../../protocol/api.ts";

/** A JSON body a route takes. */
export function body<T extends z.ZodType>(schema: T) {
  return { required: true, content: { "application/json": { schema } } };
}

/** A page of a list. One more than is shown is asked for, so that `next` is there only where there is more. */
export function pageOf<T>(limit: number, ask: (limit: number) => T[], nextOf: (last: T) => string) {
  const found = ask(limit + 1);
  const items = found.slice(0, limit);
  const last = items.at(-1);
  return { items, ...(found.length > limit && last !== undefined && { next: nextOf(last) }) };
}

/** A JSON answer a route gives, beside the one every route may give. */
export function answers<const S extends number, T extends z.ZodType>(status: S, schema: T) {
  const json = { description: "The answer", content: { "application/json": { schema } } };
  const failed = { description: "The request was not served", content: { "application/json": { schema: ApiError } } };
  return { [status]: json, default: failed } as { [K in S]: typeof json } & { default: typeof failed };
}
